-- run_headers_id, run_headers_tree, log_run: the numbers are ordered in the index, then only the page is read. Leaves out
-- what transactions from $5 on have written; `open` tells whether something may still be committed before the row.
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest, xid,
  xid >= pg_snapshot_xmin(pg_current_snapshot()) AS open
FROM errand.log_rows
WHERE tenant = $1 AND seq = ANY (ARRAY(
  SELECT l.seq FROM errand.log l
  WHERE l.seq > $3 AND ($5::xid8 IS NULL OR l.xid < $5) AND l.run_no = ANY (ARRAY(
    SELECT h.run_no FROM errand.run_headers h
    WHERE h.root_no = (SELECT run_no FROM errand.run_headers WHERE tenant = $1 AND run_id = $2)
  ))
  ORDER BY l.seq LIMIT $4
))
ORDER BY seq
