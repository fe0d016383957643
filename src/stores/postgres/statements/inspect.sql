-- workers_live, runs_due; sizes are read from the catalog
SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS durability,
  pg_database_size(current_database()) AS size,
  (SELECT count(*) FROM pg_stat_replication) AS standbys,
  (SELECT coalesce(max(extract(epoch FROM replay_lag) * 1000), 0)::bigint FROM pg_stat_replication) AS lag,
  (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::bigint FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()) AS "oldestTransaction",
  (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables WHERE schemaname = $3) AS "deadRows",
  (SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables WHERE schemaname = $3) AS "liveRows",
  (SELECT min(heartbeat_at) FROM errand.workers WHERE tenant = $1 AND NOT dead) AS "heartbeatAt",
  due.due_at AS "dueAt", due.run_id AS "runId"
FROM (SELECT 1) AS one LEFT JOIN LATERAL (
  SELECT r.due_at, h.run_id FROM errand.runs r
  JOIN errand.run_headers h ON h.tenant = r.tenant AND h.run_no = r.run_no
  WHERE r.tenant = $1 AND r.claim_key IS NOT NULL AND r.due_at <= $2
  ORDER BY r.due_at LIMIT 1
) AS due ON true
