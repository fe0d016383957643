import type { Json } from "../../rules/json.ts";
import { NO_USAGE, type Usage, addUsage } from "../budget/usage.ts";
import {
  NO_DELEGATIONS,
  type Delegations,
  decideDelegations,
  evolveDelegations,
} from "../delegation/delegations.ts";
import { type Decision, accept, refuse, unchanged } from "../decision.ts";
import type { DelegationId, TicketId } from "../id.ts";
import type { TicketKind } from "../ticket/ticket.ts";
import { type ToolBatch, decideBatch, evolveBatch, publishedBatch } from "../tool-batch/tool-batch.ts";
import type { RunEnd } from "./run-end.ts";
import type { LaneFact, RunFact } from "./run-fact.ts";
import type { RunHeader } from "./run-header.ts";
import { type Wait, waitState } from "./wait.ts";

/*
 * A Run: one execution on a thread.
 *
 * R1 created → ready → running → (waiting | awaiting | paused) → ready …; ended is final (L3).
 * R2 Steps count up over all attempts and never restart.
 * R3 An attempt's end is not the Run's end; a retry keeps the recorded calls.
 * R4 The end seals the batch, closes the own ticket and asks every open child to cancel, all in one commit (L11, L17).
 * R5 `ready` and `running` differ only by a claim, which is not a fact (L2).
 */

export type RunStatus =
  | { readonly kind: "created" }
  | { readonly kind: "ready" }
  | { readonly kind: "running" }
  | { readonly kind: "waiting"; readonly wait: Wait }
  | { readonly kind: "awaiting"; readonly wait: Wait & { readonly on: "ticket" } }
  | { readonly kind: "paused" }
  | { readonly kind: "ended"; readonly end: RunEnd };

/** The Run's own open ticket; tickets of descendants are only referred to by their awaiting call. */
export interface OwnTicket {
  readonly ticketId: TicketId;
  readonly kind: TicketKind;
  readonly callDigest: string | null;
}

export interface RunState {
  readonly header: RunHeader;
  readonly status: RunStatus;
  /** The attempt under way, from 1; 0 before the first claim's first commit. */
  readonly attempt: number;
  /** False between a failed attempt and the next one. */
  readonly attemptOpen: boolean;
  /** Attempts that failed, in a row. */
  readonly failures: number;
  /** Steps taken before the function last started over; those since then count against its limit. */
  readonly stepsBefore: number;
  /** Number of the next step to publish. */
  readonly nextStep: number;
  readonly batch: ToolBatch | null;
  readonly delegations: Delegations;
  readonly ticket: OwnTicket | null;
  /** Tickets this Run has opened, which numbers the next one. */
  readonly ticketsOpened: number;
  readonly usage: Usage;
  /** Usage of ended children, apart from the own. */
  readonly childUsage: Usage;
  /** Signals up to this number have been observed by the lane. */
  readonly observedSignal: number;
  /** A cancel that was asked for and not yet obeyed. */
  readonly cancel: { readonly reason: string } | null;
  readonly pause: { readonly reason: string } | null;
  /** What the carrier of a remote child remembers between polls. */
  readonly note: Json;
  /** The input that a function agent continues with; its own input until it says otherwise. */
  readonly input: Json;
  readonly historyDigest: string | null;
}

/** The first state, from the fact that creates the Run. */
export function createdRun(fact: RunFact & { readonly type: "run_created" }): RunState {
  return {
    header: fact.header,
    status: fact.delayMs > 0 ? { kind: "created" } : { kind: "ready" },
    attempt: 0,
    attemptOpen: false,
    failures: 0,
    stepsBefore: 0,
    nextStep: 1,
    batch: null,
    delegations: NO_DELEGATIONS,
    ticket: null,
    ticketsOpened: 0,
    usage: NO_USAGE,
    childUsage: NO_USAGE,
    observedSignal: 0,
    cancel: null,
    pause: null,
    note: null,
    input: fact.header.input,
    historyDigest: null,
  };
}

const RUNNING: RunStatus = { kind: "running" };
const READY: RunStatus = { kind: "ready" };

/** Applies one committed fact. A late fact about an ended Run changes nothing (L3). */
export function evolveRun(state: RunState, fact: RunFact): RunState {
  if (state.status.kind === "ended") return state;
  switch (fact.type) {
    case "run_created":
      return state;
    case "cancel_requested":
      return { ...state, cancel: state.cancel ?? { reason: fact.reason }, status: woken(state.status) };
    case "pause_requested":
      return { ...state, pause: { reason: fact.reason }, status: woken(state.status) };
    case "continue_requested":
      return { ...state, pause: null, status: woken(state.status) };
    case "ticket_decided":
    case "child_missing":
      return { ...state, status: woken(state.status) };
    case "late_result":
      return state;
    default:
      return evolveLane(state, fact);
  }
}

function woken(status: RunStatus): RunStatus {
  return status.kind === "waiting" || status.kind === "awaiting" || status.kind === "paused" ? READY : status;
}

function evolveLane(before: RunState, fact: LaneFact): RunState {
  const state: RunState = before.status.kind === "running" ? before : { ...before, status: RUNNING };
  switch (fact.type) {
    case "attempt_started":
      return { ...state, attempt: fact.attempt, attemptOpen: true };
    case "attempt_failed":
      return {
        ...state,
        attemptOpen: false,
        failures: state.failures + 1,
        usage: addUsage(state.usage, fact.usage),
      };
    case "history_appended":
      return { ...state, historyDigest: fact.digest };
    case "step_published":
      return {
        ...state,
        failures: 0,
        nextStep: fact.step + 1,
        batch: publishedBatch(fact.step, fact.mode, fact.calls),
        usage: addUsage(state.usage, fact.usage),
        historyDigest: fact.historyDigest ?? state.historyDigest,
      };
    case "call_executing": {
      if (state.batch === null || state.batch.step !== fact.step) return state;
      const counted = fact.execution === 1 && state.batch.calls[fact.index]?.request.kind === "tool";
      return {
        ...state,
        batch: evolveBatch(state.batch, fact),
        usage: counted ? { ...state.usage, toolCalls: state.usage.toolCalls + 1 } : state.usage,
      };
    }
    case "call_awaiting":
    case "call_resumed":
    case "call_completed":
    case "call_indeterminate":
    case "batch_finalized":
      return state.batch === null || state.batch.step !== fact.step
        ? state
        : { ...state, batch: evolveBatch(state.batch, fact) };
    case "delegation_opened":
    case "delegation_cancel_requested":
    case "delegation_closed":
      return { ...state, delegations: evolveDelegations(state.delegations, fact) };
    case "child_result_consumed":
    case "child_result_discarded":
      return { ...state, childUsage: addUsage(state.childUsage, fact.usage) };
    case "ticket_opened":
      return {
        ...state,
        ticket: { ticketId: fact.ticketId, kind: fact.kind, callDigest: fact.callDigest },
        ticketsOpened: state.ticketsOpened + 1,
      };
    case "ticket_consumed":
    case "ticket_closed":
      return state.ticket?.ticketId === fact.ticketId ? { ...state, ticket: null } : state;
    case "control_observed":
      return { ...state, observedSignal: fact.upTo };
    case "parked":
      return { ...state, status: parkedStatus(fact.wait) };
    case "carrier_noted":
      // The peer answered: outages before it do not count towards giving up.
      return { ...state, note: fact.note, failures: 0 };
    case "continued_as":
      return { ...state, input: fact.input, batch: null, stepsBefore: state.nextStep - 1 };
    case "run_ended":
      return {
        ...state,
        status: { kind: "ended", end: fact.end },
        usage: addUsage(state.usage, fact.usage),
        delegations: { ...state.delegations, parentEnded: true },
      };
    default:
      return fact satisfies never;
  }
}

function parkedStatus(wait: Wait): RunStatus {
  const state = waitState(wait);
  switch (state) {
    case "paused":
      return { kind: "paused" };
    case "awaiting":
      return wait.on === "ticket" ? { kind: "awaiting", wait } : { kind: "waiting", wait };
    case "waiting":
      return { kind: "waiting", wait };
    default:
      return state satisfies never;
  }
}

export interface UnreadResult {
  readonly delegationId: DelegationId;
  readonly digest: string;
  readonly usage: Usage | null;
  readonly treeRunsUsed: number;
}

export type RunRefusal = "RUN_ENDED" | "BATCH_OPEN" | "NOT_PARKABLE";

/** Everything that a Run's end settles, in one commit: calls, ticket, children, unread envelopes, then the end itself. */
export function decideEnd(
  state: RunState,
  end: RunEnd,
  usage: Usage | null,
  unread: readonly UnreadResult[],
): Decision<LaneFact, RunRefusal> {
  if (state.status.kind === "ended") {
    return JSON.stringify(state.status.end) === JSON.stringify(end)
      ? unchanged()
      : refuse("RUN_ENDED", `${state.header.runId} has ended: ${state.status.end.kind}`);
  }
  const facts: LaneFact[] = [];
  if (state.batch !== null && state.batch.status === "open") {
    if (end.kind === "completed") {
      return refuse(
        "BATCH_OPEN",
        `step ${state.batch.step} of ${state.header.runId} has calls without an answer`,
      );
    }
    const sealed = decideBatch(state.batch, { type: "seal" });
    if (sealed.ok) facts.push(...sealed.facts);
  }
  if (state.ticket !== null) {
    facts.push({ type: "ticket_closed", ticketId: state.ticket.ticketId, reason: `run ${end.kind}` });
  }
  const delivered = new Map(unread.map((one) => [one.delegationId, one]));
  for (const { delegationId, digest, usage: spent } of unread) {
    facts.push({ type: "child_result_discarded", delegationId, digest, usage: spent });
  }
  let treeRunsUsed = state.delegations.treeRunsUsed;
  for (const open of state.delegations.open) {
    const result = delivered.get(open.delegationId);
    treeRunsUsed += result === undefined ? open.treeRuns : result.treeRunsUsed;
    if (result === undefined) continue;
    const { delegationId } = open;
    facts.push({
      type: "delegation_closed",
      delegationId,
      reason: "discarded",
      treeRunsUsed: result.treeRunsUsed,
    });
  }
  const intents = decideDelegations(state.delegations, { type: "end_parent", reason: `parent ${end.kind}` });
  if (intents.ok) {
    for (const intent of intents.facts) {
      if (intent.type !== "delegation_cancel_requested" || !delivered.has(intent.delegationId))
        facts.push(intent);
    }
  }
  facts.push({ type: "run_ended", end, usage, treeRunsUsed });
  return accept(...facts);
}
