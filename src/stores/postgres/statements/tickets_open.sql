-- tickets_open
SELECT tenant, ticket_id AS "ticketId", run_id AS "runId", root_run_id AS "rootRunId", kind, status,
  opened_at AS "openedAt", deadline_at AS "deadlineAt", body, decision_id AS "decisionId",
  decision_digest AS "decisionDigest", close_reason AS "closeReason"
FROM errand.tickets WHERE tenant = $1 AND status = 'open' ORDER BY ticket_no LIMIT $2
