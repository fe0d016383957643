-- publications_pkey
SELECT ref, name, body, published_at AS "publishedAt" FROM errand.publications WHERE tenant = $1 AND ref = $2
