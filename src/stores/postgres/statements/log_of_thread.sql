-- run_headers_thread, run_headers_later, log_run: the numbers are ordered in the index, then only the page is read
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest
FROM errand.log_rows
WHERE tenant = $1 AND seq = ANY (ARRAY(
  SELECT l.seq FROM errand.log l
  WHERE l.seq > $3 AND l.run_no = ANY (ARRAY(
    SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND thread_id = $2 AND thread_no = run_no
    UNION ALL
    SELECT run_no FROM errand.run_headers WHERE thread_no <> run_no
      AND thread_no = (SELECT run_no FROM errand.run_headers
        WHERE tenant = $1 AND thread_id = $2 AND thread_no = run_no)
  ))
  ORDER BY l.seq LIMIT $4
))
ORDER BY seq
