-- limits_pkey
SELECT tenant_runs AS tenant, tree_runs AS tree, agents::text AS agents FROM errand.limits WHERE tenant = $1
