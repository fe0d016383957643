-- run_headers_id, log_run
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest
FROM errand.log_rows
WHERE tenant = $1 AND seq > $3
  AND run_no = (SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $2)
ORDER BY seq LIMIT $4
