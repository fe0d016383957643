-- runs_ended; the longest ended first, after a place in that order
SELECT run_no AS "runNo", thread_no AS "threadNo", ended_at AS "endedAt" FROM errand.runs
WHERE tenant = $1 AND ended_at IS NOT NULL AND run_no = root_no AND ended_at < $2 AND (ended_at, run_no) > ($3, $4)
ORDER BY ended_at, run_no LIMIT $5
