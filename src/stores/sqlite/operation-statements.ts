/*
 * What an operator asks for; none of it is on the way of a Run. The comment names the index that serves it.
 */

const TREE = `SELECT run_no FROM runs WHERE root_no = ?`;

export const OPERATIONS = {
  // pk
  setLimits: `INSERT INTO limits (tenant, tenant_runs, tree_runs, agents) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET tenant_runs = excluded.tenant_runs, tree_runs = excluded.tree_runs,
    agents = excluded.agents`,

  // runs_ended; the longest ended first, after a place in that order
  endedRoots: `SELECT run_no AS runNo, thread_id AS threadId, ended_at AS endedAt FROM runs INDEXED BY runs_ended
    WHERE tenant = ? AND parent_run_id IS NULL AND ended_at IS NOT NULL AND ended_at >= ? AND ended_at < ?
    AND (ended_at > ? OR run_no > ?) ORDER BY ended_at, run_no LIMIT ?`,
  // runs_thread; a root's thread has only roots
  rootsOnThread: `SELECT run_no AS rootNo, run_id AS rootRunId FROM runs WHERE tenant = ? AND thread_id = ?`,
  // runs_tree, inbox_parent, delegations_tree, tickets_root
  isUnsettled: `SELECT EXISTS (SELECT 1 FROM runs WHERE root_no = ? AND (ended_at IS NULL OR ended_at >= ?))
    OR EXISTS (SELECT 1 FROM inbox WHERE parent_no IN (${TREE}) AND status = 'unread')
    OR EXISTS (SELECT 1 FROM delegations WHERE root_no = ? AND status = 'cancel_requested' AND intent_delivered = 0)
    OR EXISTS (SELECT 1 FROM tickets WHERE tenant = ? AND root_run_id = ? AND status = 'open') AS unsettled`,
  // runs_tree
  treeSize: `SELECT count(*) AS runs, max(ended_at) AS endedAt FROM runs WHERE root_no = ?`,
  // log_run
  deleteLog: `DELETE FROM log WHERE run_no IN (${TREE})`,
  // inbox_parent
  deleteInbox: `DELETE FROM inbox WHERE parent_no IN (${TREE})`,
  // delegations_tree
  deleteDelegations: `DELETE FROM delegations WHERE root_no = ?`,
  // tickets_root
  deleteTickets: `DELETE FROM tickets WHERE tenant = ? AND root_run_id = ?`,
  // runs_tree
  deleteRuns: `DELETE FROM runs WHERE root_no = ?`,
  // tombstones_root
  insertTombstone: `INSERT OR REPLACE INTO tombstones (tenant, root_run_id, runs, ended_at, pruned_at)
    VALUES (?, ?, ?, ?, ?)`,
  // pk
  setSeqFloor: `INSERT INTO meta (key, value) VALUES ('seq_floor', CAST(? AS TEXT))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
  // tombstones_tenant
  tombstones: `SELECT tenant, root_run_id AS rootRunId, runs, ended_at AS endedAt, pruned_at AS prunedAt
    FROM tombstones WHERE tenant = ? ORDER BY tombstone_no DESC LIMIT ?`,
  // events_tenant
  oldestEvents: `SELECT seq, at FROM events WHERE tenant = ? ORDER BY seq LIMIT ?`,
  // events_tenant
  deleteEvents: `DELETE FROM events WHERE tenant = ? AND seq <= ?`,
  // workers_incarnation: the tenant's workers
  deleteDeadWorkers: `DELETE FROM workers WHERE tenant = ? AND dead = 1 AND heartbeat_at < ?`,

  // runs_user
  rootsOfUser: `SELECT run_no AS rootNo, run_id AS rootRunId, thread_id AS threadId FROM runs INDEXED BY runs_user
    WHERE tenant = ? AND user = ? AND parent_run_id IS NULL`,
  // log_run
  bodiesOfLog: `SELECT seq AS no, body AS text FROM log WHERE run_no IN (${TREE})`,
  eraseLog: `UPDATE log SET body = ? WHERE seq = ?`,
  // inbox_parent
  bodiesOfInbox: `SELECT envelope_no AS no, body AS text FROM inbox WHERE parent_no IN (${TREE})`,
  eraseInbox: `UPDATE inbox SET body = ? WHERE envelope_no = ?`,
  // tickets_root
  bodiesOfTickets: `SELECT ticket_no AS no, body AS text FROM tickets WHERE tenant = ? AND root_run_id = ?`,
  eraseTicket: `UPDATE tickets SET body = ? WHERE ticket_no = ?`,
  reasonsOfTickets: `SELECT ticket_no AS no, close_reason AS text FROM tickets
    WHERE tenant = ? AND root_run_id = ? AND close_reason IS NOT NULL`,
  eraseReason: `UPDATE tickets SET close_reason = ? WHERE ticket_no = ?`,
  // runs_tree
  summaries: `SELECT run_no AS no, summary AS text FROM runs WHERE root_no = ?`,
  eraseSummary: `UPDATE runs SET summary = ?, user = NULL WHERE run_no = ?`,

  // runs_live
  countRunning: `SELECT count(*) AS count FROM runs INDEXED BY runs_live
    WHERE tenant = ? AND claimed_by > '' AND ended_at IS NULL`,
  // runs_id
  rootNo: `SELECT run_no AS rootNo FROM runs WHERE tenant = ? AND run_id = ?`,

  // workers_live
  oldestBeat: `SELECT min(heartbeat_at) AS heartbeatAt FROM workers WHERE tenant = ? AND dead = 0`,
  // runs_due
  oldestDue: `SELECT run_id AS runId, due_at AS dueAt FROM runs INDEXED BY runs_due
    WHERE tenant = ? AND lane = 1 AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT 1`,
  // tombstones_tenant
  countTombstones: `SELECT count(*) AS count FROM tombstones WHERE tenant = ?`,
  version: `SELECT sqlite_version() AS version`,
} as const;

/** Of everything that a tenant has; the log last of all is read in whole. */
export const TENANT_TABLES = [
  "inbox",
  "delegations",
  "tickets",
  "events",
  "workers",
  "publications",
  "limits",
  "tombstones",
  "runs",
  "log",
] as const;
