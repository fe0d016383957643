-- The transactions below xmin have all ended
SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin
