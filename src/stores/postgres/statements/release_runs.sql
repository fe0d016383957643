SELECT run_id AS "runId" FROM errand.release_runs($1, $2, $3::text[], $4::integer[], $5::bigint) AS r(run_id)
