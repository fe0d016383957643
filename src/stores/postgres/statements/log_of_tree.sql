-- run_headers_id, run_headers_tree, log_run: the numbers are ordered in the index, then only the page is read. $5 is the
-- last entry to be read, or null.
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest
FROM errand.log_rows
WHERE tenant = $1 AND seq = ANY (ARRAY(
  SELECT l.seq FROM errand.log l
  WHERE l.seq > $3 AND ($5::bigint IS NULL OR l.seq <= $5) AND l.run_no = ANY (ARRAY(
    SELECT h.run_no FROM errand.run_headers h
    WHERE h.root_no = (SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $2)
  ))
  ORDER BY l.seq LIMIT $4
))
ORDER BY seq
