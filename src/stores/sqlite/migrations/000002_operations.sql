-- On whose behalf a Run was started, so that what is theirs can be erased; forgotten with it.
ALTER TABLE runs ADD COLUMN user TEXT;
UPDATE runs SET user = (SELECT json_extract(log.body, '$[0].header.user') FROM log WHERE log.seq = runs.run_no)
WHERE parent_run_id IS NULL;

CREATE INDEX runs_user ON runs (tenant, user) WHERE user IS NOT NULL AND parent_run_id IS NULL;
-- Trees that may be pruned, the longest ended first.
CREATE INDEX runs_ended ON runs (tenant, ended_at) WHERE ended_at IS NOT NULL AND parent_run_id IS NULL;

-- With the tree at its end: Runs of a tree that is at its limit are passed over in the index.
DROP INDEX runs_claimable;
CREATE INDEX runs_claimable ON runs (tenant, publication, claim_key, run_no, due_at, root_no)
WHERE lane = 1 AND due_at IS NOT NULL;

-- How many Runs may run at the same time; null is no limit.
CREATE TABLE limits (
  tenant TEXT NOT NULL PRIMARY KEY,
  tenant_runs INTEGER,
  tree_runs INTEGER,
  -- JSON object of limits by agent name.
  agents TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is left of pruned trees.
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
