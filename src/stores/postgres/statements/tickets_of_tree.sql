-- tickets_root
SELECT tenant, ticket_id AS "ticketId", run_id AS "runId", root_run_id AS "rootRunId", kind, status,
  opened_at AS "openedAt", deadline_at AS "deadlineAt", body, decision_id AS "decisionId",
  decision_digest AS "decisionDigest", close_reason AS "closeReason"
FROM errand.tickets WHERE tenant = $1 AND root_run_id = $4 AND ($2::boolean IS NULL OR (status = 'open') = $2)
ORDER BY ticket_no LIMIT $3
