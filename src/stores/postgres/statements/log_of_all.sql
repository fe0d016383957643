-- log_pkey; for readers of the whole store, it passes over other tenants' rows. $2 is not used.
SELECT seq, tenant, "rootRunId", "threadId", "runId", source, version, signal, at, body, "operationId", digest
FROM errand.log_rows
WHERE tenant = $1 AND $2::text IS NULL AND seq > $3 AND ($5::bigint IS NULL OR seq <= $5)
ORDER BY seq LIMIT $4
