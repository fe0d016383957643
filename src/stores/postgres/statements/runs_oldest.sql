-- run_headers_pkey, runs_pkey, log_pkey
SELECT tenant, "runId", "rootRunId", "parentRunId", "threadId", "delegationId", agent, publication, depth, priority, state,
  lane, version, "signalSeq", "controlSeq", epoch, "fruitlessClaims", "claimedBy", "dueAt", "createdAt", "endedAt", summary
FROM errand.run_rows
WHERE tenant = $1 AND ($2::text[] IS NULL OR state = ANY ($2)) AND (NOT $3::boolean OR "parentRunId" IS NULL)
ORDER BY run_no ASC LIMIT $4 OFFSET $5
