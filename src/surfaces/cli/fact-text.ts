import type { Json } from "../../rules/json.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { RunFact } from "../../domain/run/run-fact.ts";
import type { Wait } from "../../domain/run/wait.ts";
import type { CallOutcome } from "../../domain/tool-batch/call-outcome.ts";
import type { CallRequest } from "../../domain/tool-batch/call-request.ts";
import { durationText, plain } from "./measure.ts";

const LONGEST_VALUE = 160;

/** A committed fact as one line for people. */
export function factText(fact: RunFact, callName: (step: number, index: number) => string | null): string {
  const call = (one: { readonly step: number; readonly index: number }): string => {
    const name = callName(one.step, one.index);
    return `call ${one.step}.${one.index}${name === null ? "" : ` ${name}`}`;
  };
  switch (fact.type) {
    case "run_created":
      return `created with ${valueText(fact.header.input)}${fact.delayMs > 0 ? `, to start in ${durationText(fact.delayMs)}` : ""}`;
    case "attempt_started":
      return fact.attempt === 1 ? "started" : `attempt ${fact.attempt} started`;
    case "attempt_failed":
      return `attempt ${fact.attempt} failed: ${fact.error.code}: ${plain(fact.error.message)}; next in ${durationText(fact.retryInMs)}`;
    case "history_appended":
      return `history: ${counted(fact.messages.length, "message")} more`;
    case "step_published":
      return `step ${fact.step}: ${fact.calls.map(requestText).join(", ") || "no calls"}`;
    case "call_executing":
      return `${call(fact)} executing${fact.execution > 1 ? ` once more (execution ${fact.execution})` : ""}`;
    case "call_awaiting":
      return `${call(fact)} awaits ${fact.ticketId} (${fact.ticketKind})`;
    case "call_resumed":
      return `${call(fact)} goes on`;
    case "call_completed":
      return `${call(fact)} ${outcomeText(fact.outcome)}`;
    case "call_indeterminate":
      return `${call(fact)} indeterminate: ${fact.reason}`;
    case "batch_finalized":
      return `step ${fact.step} finished`;
    case "delegation_opened":
      return `delegates to ${fact.target} as ${fact.childRunId} (${fact.delegationId})`;
    case "delegation_cancel_requested":
      return `asks ${fact.delegationId} to cancel: ${plain(fact.reason)}`;
    case "delegation_closed":
      return `closed ${fact.delegationId}: ${fact.reason}`;
    case "child_result_consumed":
      return `took the result of ${fact.delegationId}`;
    case "child_result_discarded":
      return `discarded the result of ${fact.delegationId}`;
    case "ticket_opened":
      return `opened ${fact.ticketId} (${fact.kind}): ${plain(fact.prompt)}`;
    case "ticket_decided":
      return `${fact.ticketId} answered${fact.by === null ? "" : ` by ${plain(fact.by)}`}: ${valueText(fact.answer)}`;
    case "ticket_consumed":
      return `took the answer to ${fact.ticketId}`;
    case "ticket_closed":
      return `closed ${fact.ticketId}: ${plain(fact.reason)}`;
    case "control_observed":
      return `saw the requests up to ${fact.upTo}`;
    case "parked":
      return `parked: ${waitText(fact.wait)}`;
    case "carrier_noted":
      return "its carrier made a note";
    case "continued_as":
      return `starts over with ${valueText(fact.input)}`;
    case "run_ended":
      return endText(fact.end);
    case "cancel_requested":
      return `cancel requested${byText(fact.by)}: ${plain(fact.reason)}`;
    case "pause_requested":
      return `pause requested${byText(fact.by)}: ${plain(fact.reason)}`;
    case "continue_requested":
      return `continue requested${byText(fact.by)}`;
    case "child_missing":
      return `the record of ${fact.delegationId}'s child is missing`;
    case "late_result":
      return `a late result of ${fact.delegationId} came (${fact.verdict})`;
    default:
      return fact satisfies never;
  }
}

/** How a Run ended, with what it returned or why. */
export function endText(end: RunEnd): string {
  switch (end.kind) {
    case "completed":
      return `completed: ${valueText(end.output)}`;
    case "failed":
      return `failed: ${end.error.code}: ${plain(end.error.message)}`;
    case "canceled":
      return `canceled: ${plain(end.reason)}${end.confirmed ? "" : " (its peer has not confirmed)"}`;
    case "stopped":
      return `stopped (${end.reason}): ${plain(end.detail)}`;
    case "indeterminate":
      return `indeterminate: ${plain(end.reason)}`;
    default:
      return end satisfies never;
  }
}

export function outcomeText(outcome: CallOutcome): string {
  return outcome.ok
    ? `completed: ${valueText(outcome.value)}`
    : `failed: ${outcome.error.code}: ${plain(outcome.error.message)}`;
}

/** A value on one line; a long one is cut, as `--json` has it whole. */
export function valueText(value: Json, longest = LONGEST_VALUE): string {
  const text = plain(canonicalJson(value));
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

export function waitText(wait: Wait): string {
  switch (wait.on) {
    case "children":
      return `waits for ${counted(wait.delegationIds.length, "child", "children")}`;
    case "timer":
      return "sleeps";
    case "peer":
      return `is carried by a peer (${plain(wait.detail)})`;
    case "retry":
      return `attempt ${wait.attempt} is to come`;
    case "ticket":
      return `awaits ${wait.ticketId} (${wait.ticketKind})`;
    case "continue":
      return "paused";
    default:
      return wait satisfies never;
  }
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function requestText(request: CallRequest): string {
  const input = request.kind === "recorded" ? "" : `(${valueText(request.input, 80)})`;
  return `${request.tool}${input}`;
}

function byText(by: string | null): string {
  return by === null ? "" : ` by ${plain(by)}`;
}
