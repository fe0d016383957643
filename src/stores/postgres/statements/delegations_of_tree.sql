-- delegations_tree; 0 holds those of a parent that is not there
SELECT tenant, delegation_id AS "delegationId", root_run_id AS "rootRunId", parent_run_id AS "parentRunId",
  child_run_id AS "childRunId", step, call_index AS "index", target, status, contract_version AS "contractVersion",
  contract_digest AS "contractDigest", intent_delivered AS "intentDelivered"
FROM errand.delegations
WHERE root_no IN (0, coalesce((SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $2), 0))
  AND tenant = $1 AND root_run_id = $2
ORDER BY delegation_no LIMIT $3
