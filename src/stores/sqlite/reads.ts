/*
 * Every read outside a transaction, prepared once. The comment, or INDEXED BY, names the index that serves it.
 *
 * A Run's, thread's or tree's number is looked up by (tenant, name) first, so nobody reads a row of another tenant.
 */

const RUN_ROW = `tenant, run_id AS runId, root_run_id AS rootRunId, parent_run_id AS parentRunId, thread_id AS threadId,
  delegation_id AS delegationId, agent, publication, depth, priority, state, lane, version, signal_seq AS signalSeq,
  control_seq AS controlSeq, epoch, fruitless_claims AS fruitlessClaims, claimed_by AS claimedBy, due_at AS dueAt,
  created_at AS createdAt, ended_at AS endedAt, summary`;

const LOG_ROW = `log.seq, log.tenant, runs.root_run_id AS rootRunId, runs.thread_id AS threadId, runs.run_id AS runId,
  log.source, log.version, log.signal, log.at, log.body, log.operation_id AS operationId, log.digest
  FROM log JOIN runs ON runs.run_no = log.run_no`;

/** Of several Runs: the numbers are found and ordered in the index, then only the page's rows are read. */
const logOf = (runNos: string): string => `SELECT ${LOG_ROW} WHERE log.seq IN (SELECT seq FROM log
  WHERE run_no IN (${runNos}) AND seq > ? ORDER BY seq LIMIT ?) ORDER BY log.seq`;

const DELEGATION_ROW = `tenant, delegation_id AS delegationId, root_run_id AS rootRunId, parent_run_id AS parentRunId,
  child_run_id AS childRunId, step, call_index AS "index", target, status, contract_version AS contractVersion,
  contract_digest AS contractDigest, intent_delivered AS intentDelivered`;

const INBOX_ROW = `tenant, delegation_id AS delegationId, parent_run_id AS parentRunId, child_run_id AS childRunId, kind,
  digest, body, status`;

const TICKET_ROW = `tenant, ticket_id AS ticketId, run_id AS runId, root_run_id AS rootRunId, kind, status,
  opened_at AS openedAt, deadline_at AS deadlineAt, body, decision_id AS decisionId, decision_digest AS decisionDigest,
  close_reason AS closeReason`;

const PUBLICATION_ROW = `ref, name, body, published_at AS publishedAt`;

const RUN_NO = `(SELECT run_no FROM runs WHERE tenant = ? AND run_id = ?)`;
const ROOT_NO = `(SELECT root_no FROM runs WHERE tenant = ? AND run_id = ?)`;

/** Filters that narrow what an index has found: states (JSON array or null), roots only, tree, parent, thread. */
const RUN_FILTER = `(? IS NULL OR state IN (SELECT value FROM json_each(?))) AND (? = 0 OR parent_run_id IS NULL)
  AND (? IS NULL OR root_run_id = ?) AND (? IS NULL OR parent_run_id = ?) AND (? IS NULL OR thread_id = ?)`;

const runs = (index: string, where: string, order: "ASC" | "DESC"): string =>
  `SELECT ${RUN_ROW} FROM runs INDEXED BY ${index} WHERE ${where} AND ${RUN_FILTER} ORDER BY run_no ${order} LIMIT ? OFFSET ?`;

const BY_TREE = `tenant = ? AND root_no = ${RUN_NO}`;
const BY_PARENT = `tenant = ? AND root_no = ${ROOT_NO} AND parent_no = ${RUN_NO}`;
const BY_THREAD = `tenant = ? AND thread_id = ?`;
const LIVE = `tenant = ? AND ended_at IS NULL`;
const ALL = `tenant = ?`;

const delegations = (index: string, where: string): string =>
  `SELECT ${DELEGATION_ROW} FROM delegations INDEXED BY ${index} WHERE ${where} ORDER BY delegation_no LIMIT ?`;

const tickets = (where: string): string =>
  `SELECT ${TICKET_ROW} FROM tickets WHERE ${where} AND (? IS NULL OR (status = 'open') = ?) ORDER BY ticket_no LIMIT ?`;

export const READS = {
  // runs_id
  run: `SELECT ${RUN_ROW} FROM runs WHERE tenant = ? AND run_id = ?`,
  treeNewest: runs("runs_tree", BY_TREE, "DESC"),
  treeOldest: runs("runs_tree", BY_TREE, "ASC"),
  childrenNewest: runs("runs_tree", BY_PARENT, "DESC"),
  childrenOldest: runs("runs_tree", BY_PARENT, "ASC"),
  threadNewest: runs("runs_thread", BY_THREAD, "DESC"),
  threadOldest: runs("runs_thread", BY_THREAD, "ASC"),
  liveNewest: runs("runs_live", LIVE, "DESC"),
  liveOldest: runs("runs_live", LIVE, "ASC"),
  allNewest: runs("runs_tenant", ALL, "DESC"),
  allOldest: runs("runs_tenant", ALL, "ASC"),
  // runs_live; what has ended is the rest of runs_tenant
  countLive: `SELECT state, count(*) AS count FROM runs WHERE tenant = ? AND ended_at IS NULL GROUP BY state`,
  countAll: `SELECT count(*) AS count FROM runs WHERE tenant = ?`,

  // log_run
  logOfRun: `SELECT ${LOG_ROW} WHERE log.run_no = ${RUN_NO} AND log.seq > ? ORDER BY log.seq LIMIT ?`,
  // runs_thread, log_run
  logOfThread: logOf(`SELECT run_no FROM runs WHERE tenant = ? AND thread_id = ?`),
  // runs_tree, log_run
  logOfTree: logOf(`SELECT run_no FROM runs WHERE root_no = ${RUN_NO}`),
  // pk; for whole-store readers, it passes over other tenants' rows
  logOfAll: `SELECT ${LOG_ROW} WHERE log.tenant = ? AND log.seq > ? ORDER BY log.seq LIMIT ?`,

  // runs_id
  pendingCounts: `SELECT run_no AS runNo, signal_seq AS signalSeq, control_seq AS controlSeq FROM runs
    WHERE tenant = ? AND run_id = ?`,
  // log_signal
  signals: `SELECT ${LOG_ROW} WHERE log.run_no = ? AND log.signal > 0 AND log.signal > ? ORDER BY log.signal`,
  // inbox_parent
  unread: `SELECT ${INBOX_ROW} FROM inbox WHERE parent_no = ? AND status = 'unread' ORDER BY envelope_no`,
  // 0 holds what was addressed to a Run that is not there
  inbox: `SELECT ${INBOX_ROW} FROM inbox INDEXED BY inbox_parent WHERE parent_no IN (0, ${RUN_NO}) AND tenant = ? AND parent_run_id = ?
    ORDER BY envelope_no`,

  // tickets_id
  ticket: `SELECT ${TICKET_ROW} FROM tickets WHERE tenant = ? AND ticket_id = ?`,
  // tickets_run
  ticketsOfRun: tickets(`tenant = ? AND run_id = ? AND (? IS NULL OR root_run_id = ?)`),
  // tickets_root
  ticketsOfTree: tickets(`tenant = ? AND root_run_id = ?`),
  // tickets_open
  ticketsOpen: tickets(`tenant = ? AND status = 'open'`),
  // tickets_id
  ticketsAll: tickets(`tenant = ?`),

  // delegations_id
  delegation: `SELECT ${DELEGATION_ROW} FROM delegations WHERE tenant = ? AND delegation_id = ?`,
  // 0 holds those of a parent that is not there
  delegationsOfParent: delegations(
    "delegations_tree",
    `root_no IN (0, ${ROOT_NO}) AND parent_no IN (0, ${RUN_NO}) AND tenant = ?
    AND parent_run_id = ? AND (? IS NULL OR root_run_id = ?)`,
  ),
  delegationsOfTree: delegations(
    "delegations_tree",
    `root_no IN (0, ${RUN_NO}) AND tenant = ? AND root_run_id = ?`,
  ),
  delegationsAll: delegations("delegations_id", `tenant = ?`),
  pendingIntents: delegations(
    "delegations_intent",
    `tenant = ? AND status = 'cancel_requested' AND intent_delivered = 0`,
  ),
  // runs_live, delegations_tree, runs_id: as many looks as Runs are alive, so it is asked rarely
  orphaned: `SELECT ${DELEGATION_ROW} FROM delegations WHERE delegation_no IN (
    SELECT d.delegation_no FROM runs AS parent INDEXED BY runs_live
    CROSS JOIN delegations AS d INDEXED BY delegations_tree ON d.root_no = parent.root_no AND d.parent_no = parent.run_no
    WHERE parent.tenant = ? AND parent.ended_at IS NULL AND d.status = 'open' AND d.tenant = parent.tenant
    AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.tenant = d.tenant AND child.run_id = d.child_run_id)
    LIMIT ?) ORDER BY delegation_no`,

  // workers_incarnation
  workers: `SELECT tenant, incarnation, name, host, pid, started_at AS startedAt, heartbeat_at AS heartbeatAt, dead,
    publications FROM workers WHERE tenant = ? ORDER BY worker_no`,
  // every worker row; only for an error message
  pids: `SELECT DISTINCT pid FROM workers WHERE host = ? AND dead = 0`,

  // publications_ref
  publication: `SELECT ${PUBLICATION_ROW} FROM publications WHERE tenant = ? AND ref = ?`,
  // publications_name
  headPublication: `SELECT ${PUBLICATION_ROW} FROM publications WHERE tenant = ? AND name = ?
    ORDER BY publication_no DESC LIMIT 1`,
  // publications_ref
  publications: `SELECT ${PUBLICATION_ROW} FROM publications WHERE tenant = ? ORDER BY publication_no`,

  // log_feeds
  lifecycle: `SELECT ${LOG_ROW} WHERE log.tenant = ? AND log.lifecycle = 1 AND log.seq > ? ORDER BY log.seq LIMIT ?`,
  // events_tenant
  events: `SELECT seq, at, kind, incarnation, run_id AS runId, epoch FROM events WHERE tenant = ? AND seq >= ?
    ORDER BY seq LIMIT ?`,
  // log_feeds
  claims: `SELECT seq, at, claimed_by AS incarnation, receipt FROM log WHERE tenant = ? AND claimed_by IS NOT NULL AND seq >= ? ORDER BY seq LIMIT ?`,

  storeId: `SELECT value FROM meta WHERE key = 'store_id'`,
} as const;
