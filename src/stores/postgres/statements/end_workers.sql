SELECT incarnation, run_id AS "runId" FROM errand.end_workers($1, $2, $3::bigint, $4::bigint)
