-- publications_pkey
INSERT INTO errand.publications (tenant, ref, publication_no, published_at, name, body)
VALUES ($1, $2, nextval('errand.numbers'), errand.now_ms($5::bigint), $3, $4)
ON CONFLICT DO NOTHING
