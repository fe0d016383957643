-- workers_pkey
SELECT tenant, incarnation, name, host, pid, started_at AS "startedAt", heartbeat_at AS "heartbeatAt", dead, publications
FROM errand.workers WHERE tenant = $1 ORDER BY worker_no
