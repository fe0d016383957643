-- tombstones_tenant
SELECT tenant, root_run_id AS "rootRunId", runs, ended_at AS "endedAt", pruned_at AS "prunedAt"
FROM errand.tombstones WHERE tenant = $1 ORDER BY tombstone_no DESC LIMIT $2
