SELECT run_id AS "runId", epoch, version, signal_seq AS "signalSeq", control_seq AS "controlSeq",
  fruitless_claims AS "fruitlessClaims"
FROM errand.claim_runs($1, $2, $3::text[], $4::integer, $5::bigint)
