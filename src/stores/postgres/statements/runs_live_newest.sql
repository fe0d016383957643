-- runs_live, run_headers_pkey, log_pkey
SELECT tenant, "runId", "rootRunId", "parentRunId", "threadId", "delegationId", agent, publication, depth, priority, state,
  lane, version, "signalSeq", "controlSeq", epoch, "fruitlessClaims", "claimedBy", "dueAt", "createdAt", "endedAt", summary
FROM errand.run_rows
WHERE tenant = $1 AND ($2::text[] IS NULL OR state = ANY ($2)) AND (NOT $3::boolean OR "parentRunId" IS NULL)
  AND run_no IN (SELECT run_no FROM errand.runs WHERE tenant = $1 AND ended_at IS NULL AND ($2::text[] IS NULL OR state = ANY ($2)))
ORDER BY run_no DESC LIMIT $4 OFFSET $5
