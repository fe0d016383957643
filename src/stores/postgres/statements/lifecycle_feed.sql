-- log_feeds; below the oldest open transaction nothing more is committed. `hidden`: something stands above it already
SELECT z.place, z.xmax, z.hidden, f.*
FROM (
  SELECT errand.place() AS place, pg_snapshot_xmax(pg_current_snapshot())::text AS xmax,
    EXISTS (SELECT 1 FROM errand.log l WHERE l.tenant = $1 AND l.lifecycle AND (l.xid, l.seq) > ($2::xid8, $3::bigint)
      AND l.xid >= pg_snapshot_xmin(pg_current_snapshot())) AS hidden
) z
LEFT JOIN LATERAL (
  SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest, xid
  FROM errand.log_rows
  WHERE tenant = $1 AND lifecycle AND (xid, seq) > ($2::xid8, $3::bigint)
    AND xid < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY xid, seq LIMIT $4
) f ON true
