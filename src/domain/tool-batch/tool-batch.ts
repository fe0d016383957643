import type { TicketId } from "../id.ts";
import type { TicketKind } from "../ticket/ticket.ts";
import { type Decision, accept, refuse, unchanged } from "../decision.ts";
import { type CallOutcome, failed } from "./call-outcome.ts";
import type { CallRequest } from "./call-request.ts";

/*
 * The tool batch: all calls of one step. It owns call states and results, never a child's history.
 *
 * B1 A batch is published before any of its calls starts, and `executing` before that call's effect starts (L8).
 * B2 At most one call awaits (L11).
 * B3 An ended call never changes; the same answer again is nothing new, another one is a conflict.
 * B4 It is finalized once, when every call has ended, and then says nothing more (L9).
 * B5 Sealing answers every open call: never started reads `not_started`, started reads Indeterminate (L11).
 */

export type IndeterminateReason =
  | "outcome_unknown"
  | "child_missing"
  | "not_started"
  | "sealed"
  | "timed_out"
  | "unexpected_await";

export type CallState =
  | { readonly phase: "requested"; readonly request: CallRequest }
  | { readonly phase: "executing"; readonly request: CallRequest; readonly execution: number }
  | {
      readonly phase: "awaiting";
      readonly request: CallRequest;
      readonly ticketId: TicketId;
      readonly ticketKind: TicketKind;
      readonly execution: number;
    }
  | { readonly phase: "completed"; readonly request: CallRequest; readonly outcome: CallOutcome }
  | { readonly phase: "indeterminate"; readonly request: CallRequest; readonly reason: IndeterminateReason };

export type BatchMode = "parallel" | "in_order";

export interface ToolBatch {
  readonly step: number;
  readonly mode: BatchMode;
  readonly status: "open" | "finalized";
  readonly calls: readonly CallState[];
}

export type BatchFact =
  | {
      readonly type: "call_executing";
      readonly step: number;
      readonly index: number;
      readonly execution: number;
    }
  | {
      readonly type: "call_awaiting";
      readonly step: number;
      readonly index: number;
      readonly ticketId: TicketId;
      readonly ticketKind: TicketKind;
    }
  | { readonly type: "call_resumed"; readonly step: number; readonly index: number }
  | {
      readonly type: "call_completed";
      readonly step: number;
      readonly index: number;
      readonly outcome: CallOutcome;
    }
  | {
      readonly type: "call_indeterminate";
      readonly step: number;
      readonly index: number;
      readonly reason: IndeterminateReason;
    }
  | { readonly type: "batch_finalized"; readonly step: number };

export type BatchCommand =
  | { readonly type: "execute"; readonly index: number; readonly maxExecutions: number }
  | {
      readonly type: "await";
      readonly index: number;
      readonly ticketId: TicketId;
      readonly ticketKind: TicketKind;
    }
  | { readonly type: "resume"; readonly index: number; readonly ticketId: TicketId }
  | { readonly type: "complete"; readonly index: number; readonly outcome: CallOutcome }
  | { readonly type: "give_up"; readonly index: number; readonly reason: IndeterminateReason }
  | { readonly type: "finalize" }
  | { readonly type: "seal" };

export type BatchRefusal =
  | "BATCH_FINALIZED"
  | "NO_SUCH_CALL"
  | "CALL_ENDED"
  | "CALL_NOT_STARTED"
  | "CALL_ALREADY_EXECUTING"
  | "CALL_NOT_AWAITING"
  | "ANOTHER_CALL_AWAITS"
  | "TOO_MANY_EXECUTIONS"
  | "RESULT_CONFLICT"
  | "CALLS_STILL_OPEN";

/** A batch as it stands right after publication; recorded calls are answered in the same commit. */
export function publishedBatch(step: number, mode: BatchMode, requests: readonly CallRequest[]): ToolBatch {
  return {
    step,
    mode,
    status: "open",
    calls: requests.map((request) =>
      request.answer === undefined
        ? { phase: "requested", request }
        : { phase: "completed", request, outcome: request.answer },
    ),
  };
}

/** True if nothing of the call has begun: it was not reached yet, or its approval is still awaited. */
function neverStarted(call: CallState): boolean {
  if (call.phase === "requested") return true;
  return call.phase === "awaiting" && call.request.kind === "tool" && call.execution === 0;
}

/** True once the call has its one answer. */
export function callEnded(call: CallState): boolean {
  return call.phase === "completed" || call.phase === "indeterminate";
}

/** The one answer of an ended call, as its model sees it; undefined while the call is open. */
export function callAnswer(call: CallState): CallOutcome | undefined {
  switch (call.phase) {
    case "completed":
      return call.outcome;
    case "indeterminate":
      return indeterminateAnswer(call.reason);
    case "requested":
    case "executing":
    case "awaiting":
      return undefined;
    default:
      return call satisfies never;
  }
}

function indeterminateAnswer(reason: IndeterminateReason): CallOutcome {
  switch (reason) {
    case "not_started":
      return failed("not_started", "The call was never started; the run ended first.");
    case "child_missing":
      return failed("outcome_unknown", "The delegated run's record is missing, so its outcome is unknown.", {
        reason,
      });
    case "unexpected_await":
      return failed(
        "outcome_unknown",
        "The delegated run asked for input inside a parallel batch that cannot wait.",
        {
          reason,
        },
      );
    case "timed_out":
      return failed("outcome_unknown", "The call did not end in its time; what it did is unknown.", {
        reason,
      });
    case "outcome_unknown":
    case "sealed":
      return failed("outcome_unknown", "The call began and its outcome is unknown. It was not repeated.", {
        reason,
      });
    default:
      return reason satisfies never;
  }
}

export function decideBatch(batch: ToolBatch, command: BatchCommand): Decision<BatchFact, BatchRefusal> {
  const { step } = batch;
  if (command.type === "seal") {
    if (batch.status === "finalized") return unchanged();
    const facts: BatchFact[] = [];
    for (const [index, call] of batch.calls.entries()) {
      if (neverStarted(call)) facts.push({ type: "call_indeterminate", step, index, reason: "not_started" });
      else if (!callEnded(call)) facts.push({ type: "call_indeterminate", step, index, reason: "sealed" });
    }
    return accept(...facts, { type: "batch_finalized", step });
  }
  if (command.type === "finalize") {
    if (batch.status === "finalized") return unchanged();
    return batch.calls.every(callEnded)
      ? accept({ type: "batch_finalized", step })
      : refuse("CALLS_STILL_OPEN", `step ${step} has calls without an answer`);
  }
  const { index } = command;
  const call = batch.calls[index];
  if (call === undefined) return refuse("NO_SUCH_CALL", `step ${step} has no call ${index}`);
  if (callEnded(call)) return decideEnded(call, command);
  if (batch.status === "finalized") return refuse("BATCH_FINALIZED", `step ${step} is finalized`);
  switch (command.type) {
    case "execute": {
      if (call.phase === "awaiting")
        return refuse("CALL_NOT_AWAITING", `call ${step}.${index} awaits; resume it`);
      const execution = call.phase === "executing" ? call.execution + 1 : 1;
      return execution > command.maxExecutions
        ? refuse("TOO_MANY_EXECUTIONS", `call ${step}.${index} began ${execution - 1} times`)
        : accept({ type: "call_executing", step, index, execution });
    }
    case "await": {
      if (call.phase === "awaiting" && call.ticketId === command.ticketId) return unchanged();
      const other = batch.calls.findIndex((one, at) => at !== index && one.phase === "awaiting");
      return other >= 0
        ? refuse("ANOTHER_CALL_AWAITS", `call ${step}.${other} already awaits`)
        : accept({
            type: "call_awaiting",
            step,
            index,
            ticketId: command.ticketId,
            ticketKind: command.ticketKind,
          });
    }
    case "resume":
      return call.phase === "awaiting" && call.ticketId === command.ticketId
        ? accept({ type: "call_resumed", step, index })
        : refuse("CALL_NOT_AWAITING", `call ${step}.${index} does not await ${command.ticketId}`);
    case "complete":
      return accept({ type: "call_completed", step, index, outcome: command.outcome });
    case "give_up":
      return accept({ type: "call_indeterminate", step, index, reason: command.reason });
    default:
      return command satisfies never;
  }
}

function decideEnded(
  call: CallState,
  command: Exclude<BatchCommand, { type: "seal" } | { type: "finalize" }>,
): Decision<BatchFact, BatchRefusal> {
  if (command.type === "complete" && call.phase === "completed") {
    return JSON.stringify(call.outcome) === JSON.stringify(command.outcome)
      ? unchanged()
      : refuse("RESULT_CONFLICT", `call ${command.index} already has another answer`);
  }
  if (command.type === "give_up" && call.phase === "indeterminate") return unchanged();
  return refuse("CALL_ENDED", `call ${command.index} has its answer`);
}

export function evolveBatch(batch: ToolBatch, fact: BatchFact): ToolBatch {
  switch (fact.type) {
    case "call_executing":
      return withCall(batch, fact.index, (call) => ({
        phase: "executing",
        request: call.request,
        execution: fact.execution,
      }));
    case "call_awaiting":
      return withCall(batch, fact.index, (call) => ({
        phase: "awaiting",
        request: call.request,
        ticketId: fact.ticketId,
        ticketKind: fact.ticketKind,
        // A child that asks once more is still the one that was started.
        execution: call.phase === "executing" || call.phase === "awaiting" ? call.execution : 0,
      }));
    case "call_resumed":
      return withCall(batch, fact.index, (call) =>
        call.phase === "awaiting" && call.execution === 0
          ? { phase: "requested", request: call.request }
          : {
              phase: "executing",
              request: call.request,
              execution: call.phase === "awaiting" ? call.execution : 1,
            },
      );
    case "call_completed":
      return withCall(batch, fact.index, (call) => ({
        phase: "completed",
        request: call.request,
        outcome: fact.outcome,
      }));
    case "call_indeterminate":
      return withCall(batch, fact.index, (call) => ({
        phase: "indeterminate",
        request: call.request,
        reason: fact.reason,
      }));
    case "batch_finalized":
      return { ...batch, status: "finalized" };
    default:
      return fact satisfies never;
  }
}

function withCall(batch: ToolBatch, index: number, change: (call: CallState) => CallState): ToolBatch {
  return { ...batch, calls: batch.calls.map((call, at) => (at === index ? change(call) : call)) };
}
