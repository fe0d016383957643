import type { DelegationId, RunId, ThreadId, TicketId } from "../../domain/id.ts";
import type { RunState } from "../../domain/run/run.ts";
import type { DelegationRow, InboxRow, RowState, RunRow, TicketRow } from "../ports/store.ts";

/*
 * What the rows of a store must say, as the log tells it. Claims, epochs and the time at which a Run may be claimed are
 * no facts, so they are not here.
 */

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export type ExpectedRunRow = Mutable<
  Omit<RunRow, "tenant" | "state" | "epoch" | "fruitlessClaims" | "claimedBy" | "dueAt">
>;

export interface ExpectedRun {
  readonly row: ExpectedRunRow;
  /** Null once the Run has ended: its rows say the rest. */
  state: RunState | null;
  /** In which states the row may be. */
  states: readonly RowState[];
  /** When the timer of a parked Run is due; undefined where the log does not tell. */
  dueAt: number | null | undefined;
  /** Set if a signal was raised since the Run's last lane commit: whether a park took effect is then not to be told. */
  raised: boolean;
  /** Number of the last signal that is a control. */
  lastControl: number;
  /** Whether the open step belongs to a conversation, so that its answers go into the history. */
  conversational: boolean;
  readonly missingChildren: Set<DelegationId>;
}

/** A thread's lane and history. */
export interface ExpectedThread {
  holder: ExpectedRun | null;
  readonly waiting: ExpectedRun[];
  version: number;
  /** Null where messages were erased: the next fact that names a digest is believed. */
  historyDigest: string | null;
}

export interface ExpectedRows {
  readonly runs: Map<RunId, ExpectedRun>;
  readonly threads: Map<ThreadId, ExpectedThread>;
  readonly delegations: Map<DelegationId, Mutable<Omit<DelegationRow, "tenant">>>;
  readonly inbox: Map<DelegationId, Mutable<Omit<InboxRow, "tenant">>>;
  readonly tickets: Map<TicketId, Mutable<Omit<TicketRow, "tenant">>>;
}

export function nothingExpected(): ExpectedRows {
  return {
    runs: new Map(),
    threads: new Map(),
    delegations: new Map(),
    inbox: new Map(),
    tickets: new Map(),
  };
}
