-- run_headers_thread, run_headers_later, runs_pkey, log_pkey
SELECT tenant, "runId", "rootRunId", "parentRunId", "threadId", "delegationId", agent, publication, depth, priority, state,
  lane, version, "signalSeq", "controlSeq", epoch, "fruitlessClaims", "claimedBy", "dueAt", "createdAt", "endedAt", summary
FROM errand.run_rows
WHERE tenant = $1 AND ($2::text[] IS NULL OR state = ANY ($2)) AND (NOT $3::boolean OR "parentRunId" IS NULL)
  AND run_no = ANY (ARRAY(
    SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND thread_id = $7 AND thread_no = run_no
    UNION ALL
    SELECT run_no FROM errand.run_headers WHERE thread_no <> run_no
      AND thread_no = (SELECT run_no FROM errand.run_headers
        WHERE tenant = $1 AND thread_id = $7 AND thread_no = run_no)
  ))
  AND ($8::text IS NULL OR "rootRunId" = $8)
ORDER BY run_no * $4::integer LIMIT $5 OFFSET $6
