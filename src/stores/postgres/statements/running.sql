-- runs_held: as many rows as run
SELECT r.publication, h.root_run_id AS "rootRunId"
FROM errand.runs r JOIN errand.run_headers h ON h.tenant = r.tenant AND h.run_no = r.run_no
WHERE r.tenant = $1 AND r.claimed_by IS NOT NULL
