-- events_pkey, workers_pkey: what the tenant has of both
WITH events AS (DELETE FROM errand.events WHERE tenant = $1 AND at < $2)
DELETE FROM errand.workers WHERE tenant = $1 AND dead AND heartbeat_at < $2
