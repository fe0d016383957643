-- runs_due
SELECT min(due_at) AS "dueAt" FROM errand.runs WHERE tenant = $1 AND claim_key IS NOT NULL
