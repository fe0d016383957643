-- workers_pkey, runs_held, run_headers_pkey; no row: not alive
WITH beat AS (
  UPDATE errand.workers SET heartbeat_at = errand.now_ms($3::bigint)
  WHERE tenant = $1 AND incarnation = $2 AND NOT dead
  RETURNING incarnation
)
SELECT h.run_id AS "runId", h.epoch, h.version, h.signal_seq AS "signalSeq", h.control_seq AS "controlSeq",
  h.fruitless_claims AS "fruitlessClaims"
FROM beat
LEFT JOIN LATERAL (
  SELECT n.run_id, r.* FROM errand.runs r
  JOIN errand.run_headers n ON n.tenant = r.tenant AND n.run_no = r.run_no
  WHERE r.tenant = $1 AND r.claimed_by = $2
) h ON true
ORDER BY h.run_no
