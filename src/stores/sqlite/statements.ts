import type { SqlDatabase, SqlStatement } from "../../sql/sqlite-driver.ts";

/*
 * Every statement that writes, and every read on the way of a commit or a claim; prepared once. The comment names the
 * index that serves it (`pk` is the primary key), and INDEXED BY holds SQLite to it where it would choose another. A test
 * asks SQLite for the plan of each.
 */

/** The columns that commits and claims decide on; the order is that of `RunState`. */
const RUN_STATE = `run_no AS runNo, root_no AS rootNo, run_id AS runId, parent_run_id AS parentRunId,
  thread_id AS threadId, publication, priority, state, lane, version, signal_seq AS signalSeq, control_seq AS controlSeq,
  epoch, fruitless_claims AS fruitlessClaims, claimed_by AS claimedBy, due_at AS dueAt, ended_at AS endedAt, 0 AS dirty`;

const CLAIMED = `run_id AS runId, epoch, version, signal_seq AS signalSeq, control_seq AS controlSeq,
  fruitless_claims AS fruitlessClaims`;

const CLAIMABLE = `FROM runs INDEXED BY runs_claimable WHERE tenant = ? AND publication = ? AND lane = 1
  AND due_at IS NOT NULL AND claim_key <= ? AND due_at <= ?`;

const NOT_IN_TREES = `root_no NOT IN (SELECT value FROM json_each(?))`;

export const SQL = {
  // pk of log and events
  // the floor is what was given out before the newest rows were pruned
  lastSeq: `SELECT max(ifnull((SELECT max(seq) FROM log), 0), ifnull((SELECT max(seq) FROM events), 0),
    ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'seq_floor'), 0)) AS seq`,

  dataVersion: `PRAGMA data_version`,

  // log_operation
  findOperation: `SELECT digest, receipt FROM log WHERE tenant = ? AND operation_id = ? AND source = 'signal'`,
  // log_lane_operation
  findLaneOperation: `SELECT digest, receipt FROM log WHERE run_no = ? AND operation_id = ? AND source = 'lane'`,
  // pk, log_run; log_operation or log_lane_operation on the first row; the partial ones where they apply
  insertLog: `INSERT INTO log (seq, tenant, run_no, source, version, signal, at, lifecycle, claimed_by,
    operation_id, digest, receipt, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // pk
  insertEvent: `INSERT INTO events (seq, tenant, at, kind, incarnation, run_id, epoch) VALUES (?, ?, ?, ?, ?, ?, ?)`,

  // runs_id
  findRun: `SELECT ${RUN_STATE} FROM runs WHERE tenant = ? AND run_id = ?`,
  // runs_id
  runNo: `SELECT run_no AS runNo FROM runs WHERE tenant = ? AND run_id = ?`,
  // runs_id
  rootOf: `SELECT root_run_id AS rootRunId FROM runs WHERE tenant = ? AND run_id = ?`,
  // runs_thread; the lane passes in order of creation, so the newest Run tells whether any is live; and once a child is on
  // the thread no root Run is let onto it, so the newest also tells whether it is a child's
  lastOnThread: `SELECT parent_run_id AS parentRunId, version, ended_at AS endedAt FROM runs
    WHERE tenant = ? AND thread_id = ? ORDER BY run_no DESC LIMIT 1`,
  // runs_thread; only queued Runs are newer than the lane's holder
  holderOnThread: `SELECT version FROM runs WHERE tenant = ? AND thread_id = ? AND lane = 1 ORDER BY run_no DESC LIMIT 1`,
  // runs_thread; what follows the lane's holder is queued
  nextOnThread: `SELECT run_id AS runId FROM runs WHERE tenant = ? AND thread_id = ? AND run_no > ?
    ORDER BY run_no LIMIT 1`,
  // pk and every index of runs that applies
  insertRun: `INSERT INTO runs (run_no, tenant, run_id, root_no, parent_no, root_run_id, parent_run_id, thread_id,
    delegation_id, agent, publication, depth, priority, state, lane, version, signal_seq, control_seq, epoch,
    fruitless_claims, claimed_by, due_at, claim_key, created_at, ended_at, summary, user)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?, NULL, ?, ?)`,
  // pk
  writeRun: `UPDATE runs SET state = ?, lane = ?, version = ?, signal_seq = ?, control_seq = ?, epoch = ?,
    fruitless_claims = ?, claimed_by = ?, due_at = ?, claim_key = ?, ended_at = ?, summary = ifnull(?, summary)
    WHERE run_no = ?`,
  // pk; a Run that stays running touches no index
  holdRun: `UPDATE runs SET version = ?, signal_seq = ?, control_seq = ?, fruitless_claims = 0,
    summary = ifnull(?, summary) WHERE run_no = ?`,

  // runs_due
  anyDue: `SELECT 1 FROM runs WHERE tenant = ? AND lane = 1 AND due_at IS NOT NULL AND due_at <= ? LIMIT 1`,
  // runs_claimable, for one publication; due times that priority has brought forward are passed over in the index
  otherClaimable: `SELECT 1 ${CLAIMABLE} AND run_no <> ? LIMIT 1`,
  // runs_claimable, for one publication
  claimable: `SELECT run_no AS runNo, claim_key AS claimKey, ${CLAIMED} ${CLAIMABLE} ORDER BY claim_key, run_no LIMIT ?`,
  // runs_claimable; besides those of full trees (a JSON array), which are passed over in the index
  otherFitting: `SELECT 1 ${CLAIMABLE} AND run_no <> ? AND ${NOT_IN_TREES} LIMIT 1`,
  fitting: `SELECT run_no AS runNo, root_no AS rootNo, publication, claim_key AS claimKey, ${CLAIMED} ${CLAIMABLE}
    AND ${NOT_IN_TREES} ORDER BY claim_key, run_no LIMIT ?`,
  // pk
  limits: `SELECT tenant_runs AS tenant, tree_runs AS tree, agents FROM limits WHERE tenant = ?`,
  // runs_live: as many rows as run, and only where there are limits
  running: `SELECT publication, root_no AS rootNo FROM runs INDEXED BY runs_live
    WHERE tenant = ? AND claimed_by > '' AND ended_at IS NULL`,
  // pk
  claimRun: `UPDATE runs SET state = 'running', epoch = epoch + 1, fruitless_claims = fruitless_claims + 1, claimed_by = ?,
    due_at = NULL, claim_key = NULL WHERE run_no = ?`,
  // runs_live
  heldBy: `SELECT ${CLAIMED} FROM runs WHERE tenant = ? AND claimed_by = ? AND ended_at IS NULL
    ORDER BY run_no`,
  // runs_live
  freeRunsOf: `UPDATE runs SET state = 'ready', claimed_by = NULL, due_at = ?, claim_key = ? - priority * 60000,
    epoch = epoch + 1 WHERE tenant = ? AND claimed_by = ? AND ended_at IS NULL`,
  // runs_id
  releaseRun: `UPDATE runs SET state = 'ready', claimed_by = NULL, due_at = ?, claim_key = ? - priority * 60000,
    epoch = epoch + 1, fruitless_claims = max(fruitless_claims - 1, 0)
    WHERE tenant = ? AND run_id = ? AND claimed_by = ? AND epoch = ?`,
  // runs_due
  nextDue: `SELECT min(due_at) AS dueAt FROM runs WHERE tenant = ? AND lane = 1 AND due_at IS NOT NULL`,

  // delegations_id
  openDelegation: `INSERT INTO delegations (tenant, delegation_id, root_no, parent_no, root_run_id, parent_run_id,
    child_run_id, step, call_index, target, status, contract_version, contract_digest, intent_delivered)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, 0) ON CONFLICT DO NOTHING`,
  // delegations_id
  closeDelegation: `UPDATE delegations SET status = 'closed' WHERE tenant = ? AND delegation_id = ?`,
  // delegations_id
  cancelDelegation: `UPDATE delegations SET status = 'cancel_requested'
    WHERE tenant = ? AND delegation_id = ? AND status = 'open'`,
  // delegations_id
  intentDelivered: `UPDATE delegations SET intent_delivered = 1 WHERE tenant = ? AND delegation_id = ?`,

  // inbox_delegation
  findEnvelope: `SELECT kind, digest FROM inbox WHERE tenant = ? AND delegation_id = ?`,
  // inbox_delegation, inbox_parent; an older envelope gives way
  putEnvelope: `INSERT OR REPLACE INTO inbox (tenant, delegation_id, parent_no, parent_run_id, child_run_id, kind, digest,
    status, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // inbox_delegation
  readEnvelope: `UPDATE inbox SET status = ? WHERE tenant = ? AND delegation_id = ? AND digest = ? AND status = 'unread'`,

  // tickets_id
  findTicket: `SELECT status, deadline_at AS deadlineAt FROM tickets WHERE tenant = ? AND ticket_id = ?`,
  // tickets_id, tickets_run, tickets_root, tickets_open
  openTicket: `INSERT INTO tickets (tenant, ticket_id, run_id, root_run_id, kind, status, opened_at, deadline_at, body)
    VALUES (?, ?, ?, ?, ?, 'open', ?, ?, ?) ON CONFLICT DO NOTHING`,
  // tickets_id
  closeTicket: `UPDATE tickets SET status = 'closed', close_reason = ? WHERE tenant = ? AND ticket_id = ? AND status = 'open'`,
  // tickets_id
  decideTicket: `UPDATE tickets SET status = 'decided', decision_id = ?, decision_digest = ?
    WHERE tenant = ? AND ticket_id = ? AND status = 'open'`,

  // workers_incarnation
  insertWorker: `INSERT INTO workers (tenant, incarnation, name, host, pid, started_at, heartbeat_at, dead, publications)
    VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING`,
  // workers_incarnation
  updateWorker: `UPDATE workers SET publications = ? WHERE tenant = ? AND incarnation = ? AND dead = 0`,
  // workers_incarnation
  workerAlive: `SELECT 1 FROM workers WHERE tenant = ? AND incarnation = ? AND dead = 0`,
  // workers_incarnation
  renewWorker: `UPDATE workers SET heartbeat_at = ? WHERE tenant = ? AND incarnation = ? AND dead = 0`,
  // workers_incarnation
  endWorker: `UPDATE workers SET dead = 1 WHERE tenant = ? AND incarnation = ? AND dead = 0`,
  // workers_live
  expiredWorkers: `SELECT incarnation FROM workers WHERE tenant = ? AND dead = 0 AND heartbeat_at < ?`,

  // publications_ref
  insertPublication: `INSERT INTO publications (tenant, ref, name, published_at, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
} as const;

export type Statements = { readonly [Name in keyof typeof SQL]: SqlStatement };

export function prepareAll<Name extends string>(
  db: SqlDatabase,
  texts: Readonly<Record<Name, string>>,
): { readonly [N in Name]: SqlStatement } {
  const prepared = {} as { [N in Name]: SqlStatement };
  for (const name of Object.keys(texts) as Name[]) prepared[name] = db.prepare(texts[name]);
  return prepared;
}
