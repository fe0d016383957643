-- Every row carries its tenant and belongs to one tree. Names (run_id, thread_id, …) are looked up once, by a key that
-- starts with tenant; behind it stand numbers of this database (run_no, root_no, parent_no, thread_no), handed out in
-- order of creation, so that the indexes a commit writes to are written near their end, however large the tables are.
-- A number never leaves the store: a tree that moves to another shard is numbered anew under its (tenant, root_run_id).
-- `errand` stands for the schema that the store was opened with.

CREATE TABLE errand.meta (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

-- Cursors name the database that they were made for.
INSERT INTO errand.meta (key, value) VALUES ('store_id', replace(gen_random_uuid()::text, '-', ''));

-- Numbers of log entries, Runs, events, envelopes, relationships, tickets and publications.
CREATE SEQUENCE errand.numbers;

-- Who a Run is: written once.
CREATE TABLE errand.run_headers (
  tenant text COLLATE "C" NOT NULL,
  -- The seq of the Run's first log entry.
  run_no bigint NOT NULL,
  -- run_no of the tree's root, of the parent (0 without one), and of the thread's first Run.
  root_no bigint NOT NULL,
  parent_no bigint NOT NULL,
  thread_no bigint NOT NULL,
  created_at bigint NOT NULL,
  depth integer NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  root_run_id text COLLATE "C" NOT NULL,
  parent_run_id text COLLATE "C",
  thread_id text COLLATE "C" NOT NULL,
  delegation_id text COLLATE "C",
  agent text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, run_no)
);
CREATE UNIQUE INDEX run_headers_id ON errand.run_headers (tenant, run_id);
CREATE UNIQUE INDEX run_headers_thread ON errand.run_headers (tenant, thread_id) WHERE thread_no = run_no;
CREATE INDEX run_headers_later ON errand.run_headers (thread_no, run_no) WHERE thread_no <> run_no;
CREATE INDEX run_headers_tree ON errand.run_headers (root_no, parent_no, run_no);

-- Dispatch state of a Run: its own queue entry, and the row that commits and claims lock. Narrow, and with room on each
-- page for its next version.
CREATE TABLE errand.runs (
  run_no bigint PRIMARY KEY,
  root_no bigint NOT NULL,
  thread_no bigint NOT NULL,
  due_at bigint,
  -- due_at less a minute for each step of priority, while the Run may be claimed once its time comes; else null.
  claim_key bigint,
  ended_at bigint,
  -- The log entry with the newest summary.
  summary_seq bigint NOT NULL,
  depth integer NOT NULL,
  priority integer NOT NULL,
  version integer NOT NULL,
  signal_seq integer NOT NULL,
  control_seq integer NOT NULL,
  epoch integer NOT NULL,
  fruitless_claims integer NOT NULL,
  lane boolean NOT NULL,
  state text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  publication text COLLATE "C" NOT NULL,
  claimed_by text COLLATE "C"
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- One Run of a thread may run.
CREATE UNIQUE INDEX runs_lane ON errand.runs (thread_no) WHERE lane;
CREATE INDEX runs_claimable ON errand.runs (tenant, claim_key, run_no) WHERE claim_key IS NOT NULL;
CREATE INDEX runs_due ON errand.runs (tenant, due_at) WHERE claim_key IS NOT NULL;
CREATE INDEX runs_held ON errand.runs (tenant, claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX runs_live ON errand.runs (tenant, run_no) WHERE ended_at IS NULL;

-- The facts. A commit that touches no Run leaves a row with run_no 0, which only keeps its operation id.
CREATE TABLE errand.log (
  seq bigint PRIMARY KEY,
  -- The transaction that wrote it; feeds are in this order and stop below the oldest one that is still open.
  xid xid8 NOT NULL,
  run_no bigint NOT NULL,
  root_no bigint NOT NULL,
  at bigint NOT NULL,
  version integer NOT NULL,
  -- Number of the signal; 0 for lane entries and for the creation.
  signal integer NOT NULL,
  lane boolean NOT NULL,
  lifecycle boolean NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  -- On the first row of a commit, else null; claimed_by only where the commit claimed Runs, which the receipt lists.
  operation_id text COLLATE "C",
  digest text COLLATE "C",
  claimed_by text COLLATE "C",
  receipt text,
  summary text,
  body text NOT NULL
);
CREATE INDEX log_run ON errand.log (run_no, seq);
CREATE INDEX log_signal ON errand.log (run_no, signal) WHERE signal > 0;
-- The operation ids of lane commits stand with their Run, near the end of the index; those of all others, which are few,
-- with the tenant. One index for both would be written all over on every commit.
CREATE UNIQUE INDEX log_lane_operation ON errand.log (run_no, operation_id) WHERE lane;
CREATE UNIQUE INDEX log_operation ON errand.log (tenant, operation_id) WHERE NOT lane AND operation_id IS NOT NULL;
CREATE INDEX log_feeds ON errand.log (tenant, xid, seq) WHERE lifecycle OR claimed_by IS NOT NULL;

-- What workers do, for the operational feed; in one order with the log.
CREATE TABLE errand.events (
  tenant text COLLATE "C" NOT NULL,
  xid xid8 NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  run_id text COLLATE "C",
  epoch integer,
  PRIMARY KEY (tenant, xid, seq)
);

CREATE TABLE errand.delegations (
  tenant text COLLATE "C" NOT NULL,
  delegation_id text COLLATE "C" NOT NULL,
  delegation_no bigint NOT NULL,
  -- 0 for a parent without a Run row.
  root_no bigint NOT NULL,
  parent_no bigint NOT NULL,
  step integer NOT NULL,
  call_index integer NOT NULL,
  contract_version integer NOT NULL,
  intent_delivered boolean NOT NULL,
  -- False from the moment the child has a Run row; they are made in one commit, so it is hardly ever true.
  childless boolean NOT NULL,
  status text COLLATE "C" NOT NULL,
  root_run_id text COLLATE "C" NOT NULL,
  parent_run_id text COLLATE "C" NOT NULL,
  child_run_id text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  contract_digest text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, delegation_id)
) WITH (fillfactor = 90);
CREATE INDEX delegations_tree ON errand.delegations (root_no, parent_no);
CREATE INDEX delegations_childless ON errand.delegations (tenant, child_run_id) WHERE childless;
CREATE INDEX delegations_intent ON errand.delegations (tenant, delegation_no)
  WHERE status = 'cancel_requested' AND NOT intent_delivered;

-- At most one envelope for each delegation; it stands with its parent (0 for a parent without a Run row).
CREATE TABLE errand.inbox (
  parent_no bigint NOT NULL,
  delegation_id text COLLATE "C" NOT NULL,
  envelope_no bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  parent_run_id text COLLATE "C" NOT NULL,
  child_run_id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (parent_no, delegation_id, tenant)
) WITH (fillfactor = 90);
CREATE INDEX inbox_unread ON errand.inbox (parent_no, envelope_no) WHERE status = 'unread';

CREATE TABLE errand.tickets (
  tenant text COLLATE "C" NOT NULL,
  ticket_id text COLLATE "C" NOT NULL,
  ticket_no bigint NOT NULL,
  opened_at bigint NOT NULL,
  deadline_at bigint,
  status text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  root_run_id text COLLATE "C" NOT NULL,
  decision_id text COLLATE "C",
  decision_digest text COLLATE "C",
  close_reason text,
  body text NOT NULL,
  PRIMARY KEY (tenant, ticket_id)
);
CREATE INDEX tickets_run ON errand.tickets (tenant, run_id);
CREATE INDEX tickets_root ON errand.tickets (tenant, root_run_id);
CREATE INDEX tickets_open ON errand.tickets (tenant, ticket_no) WHERE status = 'open';

-- One row a worker incarnation: its lease. The heartbeat changes no indexed column.
CREATE TABLE errand.workers (
  tenant text COLLATE "C" NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  worker_no bigint NOT NULL,
  heartbeat_at bigint NOT NULL,
  started_at bigint NOT NULL,
  pid integer NOT NULL,
  dead boolean NOT NULL,
  name text NOT NULL,
  host text NOT NULL,
  publications text[] NOT NULL,
  PRIMARY KEY (tenant, incarnation)
) WITH (fillfactor = 50);
CREATE INDEX workers_live ON errand.workers (tenant) WHERE NOT dead;

CREATE TABLE errand.publications (
  tenant text COLLATE "C" NOT NULL,
  ref text COLLATE "C" NOT NULL,
  publication_no bigint NOT NULL,
  published_at bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (tenant, ref)
);
CREATE INDEX publications_name ON errand.publications (tenant, name, publication_no);
