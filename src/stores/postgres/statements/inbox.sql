-- inbox_pkey; 0 holds what was addressed to a Run that is not there
SELECT tenant, delegation_id AS "delegationId", parent_run_id AS "parentRunId", child_run_id AS "childRunId", kind, digest,
  body, status
FROM errand.inbox
WHERE parent_no IN (0, coalesce((SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $2), 0))
  AND tenant = $1 AND parent_run_id = $2
ORDER BY envelope_no
