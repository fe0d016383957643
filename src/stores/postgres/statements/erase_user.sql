SELECT erased, still_live AS "stillLive" FROM errand.erase_user($1, $2)
