-- delegations_childless, runs_pkey, run_headers_id
SELECT tenant, delegation_id AS "delegationId", root_run_id AS "rootRunId", parent_run_id AS "parentRunId",
  child_run_id AS "childRunId", step, call_index AS "index", target, status, contract_version AS "contractVersion",
  contract_digest AS "contractDigest", intent_delivered AS "intentDelivered"
FROM errand.delegations d
WHERE tenant = $1 AND childless AND status = 'open'
  AND EXISTS (SELECT 1 FROM errand.runs r WHERE r.run_no = d.parent_no AND r.ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM errand.run_headers h WHERE h.tenant = $1 AND h.run_id = d.child_run_id)
ORDER BY delegation_no LIMIT $2
