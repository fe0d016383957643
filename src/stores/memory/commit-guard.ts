import type { Commit, CommitOutcome, LaneWrite } from "../../runtime/ports/store.ts";
import { copyReceipt } from "./row.ts";
import type { TenantTables } from "./tenant-tables.ts";

type Rejection = Exclude<CommitOutcome, { readonly kind: "committed" }>;

/**
 * Looks at a commit before anything is written: a repeat first (L5), then the lane (L4), then what the commit asks of
 * other rows. Null means that all of it may be applied.
 */
export function guard(tables: TenantTables, commit: Commit, now: number): Rejection | null {
  const first = tables.receipts.get(commit.operationId);
  if (first !== undefined) {
    return first.digest === commit.digest
      ? { kind: "duplicate", receipt: copyReceipt(first.receipt) }
      : { kind: "conflict", firstDigest: first.digest };
  }
  const stale = commit.lane === null ? null : staleness(tables, commit.lane);
  if (stale !== null) return { kind: "stale", reason: stale };
  const refusal = refusalOf(tables, commit, now);
  return refusal === null ? null : { kind: "refused", reason: refusal };
}

type Stale = Extract<CommitOutcome, { readonly kind: "stale" }>["reason"];

function staleness(tables: TenantTables, lane: LaneWrite): Stale | null {
  const row = tables.runs.get(lane.runId)?.row;
  if (row === undefined) return "absent";
  if (row.state === "ended") return "ended";
  if (row.epoch !== lane.epoch || row.claimedBy !== lane.incarnation) return "epoch";
  if (row.version !== lane.version) return "version";
  if (lane.controlSeqSeen !== null && row.controlSeq !== lane.controlSeqSeen) return "control";
  const { next } = lane;
  if (next.kind !== "end" || next.signalSeqSeen === undefined) return null;
  return row.signalSeq === next.signalSeqSeen ? null : "signal";
}

type Refusal = Extract<CommitOutcome, { readonly kind: "refused" }>["reason"];

function refusalOf(tables: TenantTables, commit: Commit, now: number): Refusal | null {
  const created = new Set<string>();
  const childThreads = new Set<string>();
  for (const run of commit.create) {
    if (created.has(run.runId) || tables.runs.get(run.runId) !== undefined) return "run_exists";
    created.add(run.runId);
    if (run.parentRunId !== null) childThreads.add(run.threadId);
    else if (childThreads.has(run.threadId) || tables.runs.lane(run.threadId)?.hasChild === true) {
      return "thread_not_root";
    }
  }
  for (const signal of commit.signals) {
    const row = tables.runs.get(signal.runId)?.row;
    if (row === undefined && !created.has(signal.runId)) return "run_absent";
    if (row?.state === "ended" && signal.ifEnded === "refuse") return "run_ended";
  }
  return commit.decideTicket === null ? null : tables.tickets.refusal(commit.decideTicket.ticketId, now);
}
