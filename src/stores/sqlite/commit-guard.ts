import type { TenantId, ThreadId } from "../../domain/id.ts";
import type { Commit, CommitOutcome, LaneWrite, NewRun, Receipt } from "../../runtime/ports/store.ts";
import type { RunState, ThreadEnd } from "./run-state.ts";
import type { RunsAtWork } from "./runs-at-work.ts";
import type { Transaction } from "./transaction.ts";

type Rejection = Exclude<CommitOutcome, { readonly kind: "committed" }>;

/**
 * Looks at a commit before anything is written: a repeat first (L5), then the lane (L4), then what the commit asks of
 * other rows. Null means that all of it may be applied. Reads only.
 */
export function guard(tx: Transaction, commit: Commit, runs: RunsAtWork): Rejection | null {
  const lane = commit.lane === null ? null : runs.load(commit.lane.runId);
  const known = earlier(tx, commit, lane);
  if (known !== undefined) {
    return known.digest === commit.digest
      ? { kind: "duplicate", receipt: JSON.parse(known.receipt) as Receipt }
      : { kind: "conflict", firstDigest: known.digest };
  }
  const stale = commit.lane === null ? null : guardLane(commit.lane, lane);
  return stale ?? refusal(tx, commit, runs);
}

interface Earlier {
  readonly digest: string;
  readonly receipt: string;
}

/** The commit that stands under this operation id: on the lane's Run, or among the tenant's commits without a lane. */
function earlier(tx: Transaction, commit: Commit, lane: RunState | null): Earlier | undefined {
  const { sql } = tx;
  const onLane = lane === null ? undefined : sql.findLaneOperation.get(lane.runNo, commit.operationId);
  return (onLane ?? sql.findOperation.get(commit.tenant, commit.operationId)) as Earlier | undefined;
}

function guardLane(write: LaneWrite, run: RunState | null): Rejection | null {
  if (run === null) return { kind: "stale", reason: "absent" };
  if (run.endedAt !== null) return { kind: "stale", reason: "ended" };
  if (run.epoch !== write.epoch || run.claimedBy !== write.incarnation) {
    return { kind: "stale", reason: "epoch" };
  }
  if (run.version !== write.version) return { kind: "stale", reason: "version" };
  if (write.controlSeqSeen !== null && run.controlSeq !== write.controlSeqSeen) {
    return { kind: "stale", reason: "control" };
  }
  const { next } = write;
  if (next.kind !== "end" || next.signalSeqSeen === undefined) return null;
  return run.signalSeq === next.signalSeqSeen ? null : { kind: "stale", reason: "signal" };
}

function refusal(tx: Transaction, commit: Commit, runs: RunsAtWork): Rejection | null {
  const { sql } = tx;
  const { tenant } = commit;
  const created = commit.create;
  for (let at = 0; at < created.length; at++) {
    const run = created[at];
    if (run === undefined) continue;
    const before = created.slice(0, at);
    const isTwice = before.some((other) => other.runId === run.runId);
    if (isTwice || sql.runNo.get(tenant, run.runId) !== undefined) {
      return { kind: "refused", reason: "run_exists" };
    }
    if (run.parentRunId === null && isChildThread(tx, tenant, run.threadId, before)) {
      return { kind: "refused", reason: "thread_not_root" };
    }
  }
  for (const signal of commit.signals) {
    const run = runs.load(signal.runId);
    if (run === null && !created.some((other) => other.runId === signal.runId)) {
      return { kind: "refused", reason: "run_absent" };
    }
    if (run !== null && run.endedAt !== null && signal.ifEnded === "refuse") {
      return { kind: "refused", reason: "run_ended" };
    }
  }
  if (commit.decideTicket === null) return null;
  const ticket = sql.findTicket.get(tenant, commit.decideTicket.ticketId) as
    | { readonly status: "open" | "decided" | "closed"; readonly deadlineAt: number | null }
    | undefined;
  if (ticket === undefined) return { kind: "refused", reason: "ticket_absent" };
  if (ticket.status === "closed") return { kind: "refused", reason: "ticket_closed" };
  if (ticket.status === "decided") return { kind: "refused", reason: "ticket_decided" };
  if (ticket.deadlineAt !== null && tx.now >= ticket.deadlineAt) {
    return { kind: "refused", reason: "ticket_expired" };
  }
  return null;
}

function isChildThread(
  tx: Transaction,
  tenant: TenantId,
  threadId: ThreadId,
  before: readonly NewRun[],
): boolean {
  const last = tx.sql.lastOnThread.get(tenant, threadId) as ThreadEnd | undefined;
  if (last !== undefined && last.parentRunId !== null) return true;
  return before.some((other) => other.parentRunId !== null && other.threadId === threadId);
}
