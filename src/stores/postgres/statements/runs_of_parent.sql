-- run_headers_tree, runs_pkey, log_pkey
SELECT tenant, "runId", "rootRunId", "parentRunId", "threadId", "delegationId", agent, publication, depth, priority, state,
  lane, version, "signalSeq", "controlSeq", epoch, "fruitlessClaims", "claimedBy", "dueAt", "createdAt", "endedAt", summary
FROM errand.run_rows
WHERE tenant = $1 AND ($2::text[] IS NULL OR state = ANY ($2)) AND (NOT $3::boolean OR "parentRunId" IS NULL)
  AND root_no = (SELECT root_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $7)
  AND parent_no = (SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $7)
  AND ($8::text IS NULL OR "rootRunId" = $8) AND ($9::text IS NULL OR "threadId" = $9)
ORDER BY run_no * $4::integer LIMIT $5 OFFSET $6
