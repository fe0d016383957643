-- events_pkey, log_feeds; workers' events, and the claims that rode in commits. As the lifecycle feed, but entries of the
-- position itself are read again: a commit's claims share one
SELECT z.place, z.xmax, z.hidden, f.*
FROM (
  SELECT errand.place() AS place, pg_snapshot_xmax(pg_current_snapshot())::text AS xmax,
    EXISTS (SELECT 1 FROM errand.events e WHERE e.tenant = $1 AND (e.xid, e.seq) > ($2::xid8, $3::bigint)
      AND e.xid >= pg_snapshot_xmin(pg_current_snapshot()))
    OR EXISTS (SELECT 1 FROM errand.log l WHERE l.tenant = $1 AND l.claimed_by IS NOT NULL
      AND (l.xid, l.seq) > ($2::xid8, $3::bigint) AND l.xid >= pg_snapshot_xmin(pg_current_snapshot())) AS hidden
) z
LEFT JOIN LATERAL (
  (SELECT e.xid, e.seq, e.at, e.kind, e.incarnation, e.run_id AS "runId", e.epoch, NULL AS receipt
   FROM errand.events e
   WHERE e.tenant = $1 AND (e.xid, e.seq) >= ($2::xid8, $3::bigint) AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
   ORDER BY e.xid, e.seq LIMIT $4)
  UNION ALL
  (SELECT l.xid, l.seq, l.at, 'claimed', l.claimed_by, NULL, NULL, l.receipt
   FROM errand.log l
   WHERE l.tenant = $1 AND l.claimed_by IS NOT NULL AND (l.xid, l.seq) >= ($2::xid8, $3::bigint)
     AND l.xid < pg_snapshot_xmin(pg_current_snapshot())
   ORDER BY l.xid, l.seq LIMIT $4)
  ORDER BY xid, seq LIMIT $4
) f ON true
