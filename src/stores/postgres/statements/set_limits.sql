-- limits_pkey
INSERT INTO errand.limits (tenant, tenant_runs, tree_runs, agents) VALUES ($1, $2, $3, $4::jsonb)
ON CONFLICT (tenant) DO UPDATE SET tenant_runs = excluded.tenant_runs, tree_runs = excluded.tree_runs,
  agents = excluded.agents
