-- run_headers_id, runs_pkey, log_pkey
SELECT tenant, "runId", "rootRunId", "parentRunId", "threadId", "delegationId", agent, publication, depth, priority, state,
  lane, version, "signalSeq", "controlSeq", epoch, "fruitlessClaims", "claimedBy", "dueAt", "createdAt", "endedAt", summary
FROM errand.run_rows WHERE tenant = $1 AND "runId" = $2
