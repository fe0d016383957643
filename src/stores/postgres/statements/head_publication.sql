-- publications_name
SELECT ref, name, body, published_at AS "publishedAt" FROM errand.publications WHERE tenant = $1 AND name = $2
ORDER BY publication_no DESC LIMIT 1
