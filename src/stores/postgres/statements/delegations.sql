-- delegations_pkey; every relationship of the tenant
SELECT tenant, delegation_id AS "delegationId", root_run_id AS "rootRunId", parent_run_id AS "parentRunId",
  child_run_id AS "childRunId", step, call_index AS "index", target, status, contract_version AS "contractVersion",
  contract_digest AS "contractDigest", intent_delivered AS "intentDelivered"
FROM errand.delegations WHERE tenant = $1 ORDER BY delegation_no LIMIT $2
