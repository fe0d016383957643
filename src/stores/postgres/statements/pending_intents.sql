-- delegations_intent
SELECT tenant, delegation_id AS "delegationId", root_run_id AS "rootRunId", parent_run_id AS "parentRunId",
  child_run_id AS "childRunId", step, call_index AS "index", target, status, contract_version AS "contractVersion",
  contract_digest AS "contractDigest", intent_delivered AS "intentDelivered"
FROM errand.delegations
WHERE tenant = $1 AND status = 'cancel_requested' AND NOT intent_delivered ORDER BY delegation_no LIMIT $2
