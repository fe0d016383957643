import type { DelegationId, RunId, TicketId } from "../id.ts";
import type { RunEnd } from "../run/run-end.ts";
import type { Usage } from "../budget/usage.ts";

/** A child's end on its way to the parent, written in the child's last commit (L15). */
export interface ResultEnvelope {
  readonly kind: "result";
  readonly delegationId: DelegationId;
  readonly childRunId: RunId;
  /** The contract version that the result was made under (L21). */
  readonly contractVersion: number;
  readonly end: RunEnd;
  /** Of the child and its ended descendants; null for nothing. */
  readonly usage: Usage | null;
  /** Runs of the tree that the child and its descendants used. */
  readonly treeRunsUsed: number;
}

/** A child's wait on its way up: the ticket is owned by the deepest awaiting Run (L33). */
export interface WaitEnvelope {
  readonly kind: "wait";
  readonly delegationId: DelegationId;
  readonly childRunId: RunId;
  readonly ticketId: TicketId;
  readonly ticketKind: string;
}

/** The child's ticket was decided and the child goes on. */
export interface ResumedEnvelope {
  readonly kind: "resumed";
  readonly delegationId: DelegationId;
  readonly childRunId: RunId;
  /** Null when an ancestor only learns that the Run below it goes on. */
  readonly ticketId: TicketId | null;
}

export type Envelope = ResultEnvelope | WaitEnvelope | ResumedEnvelope;
