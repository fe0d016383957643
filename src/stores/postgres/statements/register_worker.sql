-- workers_pkey; registering again renews a live incarnation, and a dead one stays dead
WITH told AS (
  INSERT INTO errand.workers AS a (tenant, incarnation, worker_no, heartbeat_at, started_at, pid, dead, name, host,
    publications)
  SELECT $1, $2, nextval('errand.numbers'), n.at, n.at, $3::integer, false, $4, $5, $6::text[]
  FROM errand.now_ms($7::bigint) AS n(at)
  ON CONFLICT (tenant, incarnation) DO UPDATE
  SET publications = excluded.publications, heartbeat_at = excluded.heartbeat_at WHERE NOT a.dead
  RETURNING a.heartbeat_at AS at, (xmax = 0) AS added
)
INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation)
SELECT $1, pg_current_xact_id(), nextval('errand.numbers'), told.at, 'worker_started', $2 FROM told WHERE told.added
