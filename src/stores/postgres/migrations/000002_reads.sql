-- Milliseconds of the database's clock, or the time that a test gives.
CREATE FUNCTION errand.now_ms(p_now bigint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $now_ms$ SELECT coalesce(p_now, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) $now_ms$;

-- Run rows and log entries as the store port has them, with the numbers behind their names.
CREATE VIEW errand.run_rows AS
SELECT h.tenant, h.run_id AS "runId", h.root_run_id AS "rootRunId", h.parent_run_id AS "parentRunId",
  h.thread_id AS "threadId", h.delegation_id AS "delegationId", h.agent, r.publication, h.depth, r.priority, r.state,
  r.lane, r.version, r.signal_seq AS "signalSeq", r.control_seq AS "controlSeq", r.epoch,
  r.fruitless_claims AS "fruitlessClaims", r.claimed_by AS "claimedBy", r.due_at AS "dueAt",
  h.created_at AS "createdAt", r.ended_at AS "endedAt", l.summary, h.run_no, h.root_no, h.parent_no, h.thread_no
FROM errand.run_headers h
JOIN errand.runs r ON r.run_no = h.run_no
JOIN errand.log l ON l.seq = r.summary_seq;

CREATE VIEW errand.log_rows AS
SELECT l.seq, l.tenant, h.root_run_id AS "rootRunId", h.thread_id AS "threadId", h.run_id AS "runId",
  CASE WHEN l.lane THEN 'lane' ELSE 'signal' END AS source, l.version, l.signal, l.at, l.body,
  l.operation_id AS "operationId", l.digest, l.xid, l.run_no, l.root_no, l.lifecycle
FROM errand.log l
JOIN errand.run_headers h ON h.tenant = l.tenant AND h.run_no = l.run_no;

-- Which history the database is in: its own id, that of the cluster, and the timeline, which a restore or a promotion
-- changes. A cursor names it.
CREATE FUNCTION errand.place() RETURNS text
LANGUAGE sql STABLE
AS $place$
  SELECT (SELECT value FROM errand.meta WHERE key = 'store_id') || '.'
    || (SELECT system_identifier FROM pg_control_system())::text || '.'
    || CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())::text
            ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer::text END
$place$;
