SELECT errand.now_ms(NULL) AS now
