CREATE TABLE delegations (
  delegation_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  root_no INTEGER NOT NULL,
  parent_no INTEGER NOT NULL,
  root_run_id TEXT NOT NULL,
  parent_run_id TEXT NOT NULL,
  child_run_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  call_index INTEGER NOT NULL,
  target TEXT NOT NULL,
  status TEXT NOT NULL,
  contract_version INTEGER NOT NULL,
  contract_digest TEXT NOT NULL,
  intent_delivered INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX delegations_id ON delegations (tenant, delegation_id);

CREATE INDEX delegations_intent ON delegations (tenant) WHERE status = 'cancel_requested' AND intent_delivered = 0;

CREATE INDEX delegations_tree ON delegations (root_no, parent_no);

CREATE TABLE events (
  seq INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  run_id TEXT,
  epoch INTEGER
) STRICT;

CREATE INDEX events_tenant ON events (tenant, seq);

CREATE TABLE inbox (
  envelope_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  parent_no INTEGER NOT NULL,
  parent_run_id TEXT NOT NULL,
  child_run_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  digest TEXT NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX inbox_delegation ON inbox (tenant, delegation_id);

CREATE INDEX inbox_parent ON inbox (parent_no, status);

CREATE TABLE limits (
  tenant TEXT NOT NULL PRIMARY KEY,
  tenant_runs INTEGER,
  tree_runs INTEGER,
  agents TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
  seq INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  source TEXT NOT NULL,
  version INTEGER NOT NULL,
  signal INTEGER NOT NULL,
  at INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  claimed_by TEXT,
  operation_id TEXT,
  digest TEXT,
  receipt TEXT,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX log_feeds ON log (tenant, seq) WHERE lifecycle = 1 OR claimed_by IS NOT NULL;

CREATE UNIQUE INDEX log_lane_operation ON log (run_no, operation_id) WHERE source = 'lane';

CREATE UNIQUE INDEX log_operation ON log (tenant, operation_id) WHERE source = 'signal' AND operation_id IS NOT NULL;

CREATE INDEX log_run ON log (run_no, seq);

CREATE INDEX log_signal ON log (run_no, signal) WHERE signal > 0;

CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE publications (
  publication_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  ref TEXT NOT NULL,
  name TEXT NOT NULL,
  published_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX publications_name ON publications (tenant, name);

CREATE UNIQUE INDEX publications_ref ON publications (tenant, ref);

CREATE TABLE runs (
  run_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  run_id TEXT NOT NULL,
  root_no INTEGER NOT NULL,
  parent_no INTEGER NOT NULL,
  root_run_id TEXT NOT NULL,
  parent_run_id TEXT,
  thread_id TEXT NOT NULL,
  delegation_id TEXT,
  agent TEXT NOT NULL,
  publication TEXT NOT NULL,
  depth INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  state TEXT NOT NULL,
  lane INTEGER NOT NULL,
  version INTEGER NOT NULL,
  signal_seq INTEGER NOT NULL,
  control_seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  fruitless_claims INTEGER NOT NULL,
  claimed_by TEXT,
  due_at INTEGER,
  claim_key INTEGER,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  summary TEXT NOT NULL
, user TEXT) STRICT;

CREATE INDEX runs_claimable ON runs (tenant, publication, claim_key, run_no, due_at, root_no)
WHERE lane = 1 AND due_at IS NOT NULL;

CREATE INDEX runs_due ON runs (tenant, due_at) WHERE lane = 1 AND due_at IS NOT NULL;

CREATE INDEX runs_ended ON runs (tenant, ended_at) WHERE ended_at IS NOT NULL AND parent_run_id IS NULL;

CREATE UNIQUE INDEX runs_id ON runs (tenant, run_id);

CREATE INDEX runs_live ON runs (tenant, claimed_by) WHERE ended_at IS NULL;

CREATE INDEX runs_tenant ON runs (tenant, run_no);

CREATE INDEX runs_thread ON runs (tenant, thread_id);

CREATE INDEX runs_tree ON runs (root_no, parent_no);

CREATE INDEX runs_user ON runs (tenant, user) WHERE user IS NOT NULL AND parent_run_id IS NULL;

CREATE TABLE tickets (
  ticket_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  ticket_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  root_run_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  deadline_at INTEGER,
  decision_id TEXT,
  decision_digest TEXT,
  close_reason TEXT,
  body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX tickets_id ON tickets (tenant, ticket_id);

CREATE INDEX tickets_open ON tickets (tenant) WHERE status = 'open';

CREATE INDEX tickets_root ON tickets (tenant, root_run_id);

CREATE INDEX tickets_run ON tickets (tenant, run_id);

CREATE TABLE tombstones (
  tombstone_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  root_run_id TEXT NOT NULL,
  runs INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  pruned_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX tombstones_root ON tombstones (tenant, root_run_id);

CREATE INDEX tombstones_tenant ON tombstones (tenant, tombstone_no);

CREATE TABLE workers (
  worker_no INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  publications TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX workers_incarnation ON workers (tenant, incarnation);

CREATE INDEX workers_live ON workers (tenant, heartbeat_at) WHERE dead = 0;
