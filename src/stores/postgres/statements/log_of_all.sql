-- log_pkey; for readers of the whole store, it passes over other tenants' rows. $2 is not used.
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest, xid,
  xid >= pg_snapshot_xmin(pg_current_snapshot()) AS open
FROM errand.log_rows
WHERE tenant = $1 AND $2::text IS NULL AND seq > $3 AND ($5::xid8 IS NULL OR xid < $5)
ORDER BY seq LIMIT $4
