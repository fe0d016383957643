-- runs_live; what has ended is the rest of run_headers_pkey
SELECT state, count(*) AS count FROM errand.runs WHERE tenant = $1 AND ended_at IS NULL GROUP BY state
UNION ALL
SELECT 'all', count(*) FROM errand.run_headers WHERE tenant = $1
