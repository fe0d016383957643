import type { Json } from "../../rules/json.ts";
import type { Contract } from "../../domain/contract/contract.ts";
import type { DelegationId, RunId, TicketId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { CallError, CallOutcome } from "../../domain/tool-batch/call-outcome.ts";
import type { CallKind } from "../../domain/tool-batch/call-request.ts";
import type { LogRow } from "../ports/store.ts";
import { decodeFacts } from "../run/loaded-run.ts";

export interface AttemptDetail {
  readonly attempt: number;
  readonly startedAt: number;
  /** Null for the attempt under way, and for one that the Run's end closed. */
  readonly failed: { readonly at: number; readonly error: CallError } | null;
}

export interface CallDetail {
  /** `step.index`. */
  readonly call: string;
  readonly kind: CallKind;
  readonly tool: string;
  readonly input: Json;
  readonly phase: "requested" | "executing" | "awaiting" | "completed" | "indeterminate";
  readonly executions: number;
  /** Null until it is answered, and for an indeterminate call. */
  readonly outcome: CallOutcome | null;
  /** Why it is indeterminate; null otherwise. */
  readonly reason: string | null;
  readonly ticketId: TicketId | null;
  readonly delegation: { readonly delegationId: DelegationId; readonly childRunId: RunId } | null;
  readonly publishedAt: number;
  readonly endedAt: number | null;
}

export interface RequestDetail {
  readonly request: "cancel" | "pause" | "continue";
  readonly at: number;
  readonly reason: string | null;
  readonly by: string | null;
}

/** What one Run's own log says of it, in the order in which it happened. */
export interface RunDetail {
  readonly input: Json;
  readonly contract: Contract | null;
  readonly limits: RunHeader["limits"] | null;
  readonly user: string | null;
  readonly attempts: readonly AttemptDetail[];
  readonly calls: readonly CallDetail[];
  readonly requests: readonly RequestDetail[];
  readonly end: RunEnd | null;
}

/** Folds the log of one Run, oldest first, into what a person looks at. */
export function runDetail(rows: Iterable<LogRow>): RunDetail {
  let header: RunHeader | null = null;
  let end: RunEnd | null = null;
  const attempts: AttemptDetail[] = [];
  const calls = new Map<string, CallDetail>();
  const requests: RequestDetail[] = [];
  const change = (step: number, index: number, more: Partial<CallDetail>): void => {
    const call = `${step}.${index}`;
    const before = calls.get(call);
    if (before !== undefined) calls.set(call, { ...before, ...more });
  };
  for (const { at, body } of rows) {
    for (const fact of decodeFacts(body)) {
      switch (fact.type) {
        case "run_created":
          header = fact.header;
          break;
        case "attempt_started":
          attempts.push({ attempt: fact.attempt, startedAt: at, failed: null });
          break;
        case "attempt_failed": {
          const last = attempts.pop();
          const startedAt = last?.startedAt ?? at;
          attempts.push({ attempt: fact.attempt, startedAt, failed: { at, error: fact.error } });
          break;
        }
        case "step_published":
          for (const [index, request] of fact.calls.entries()) {
            calls.set(`${fact.step}.${index}`, {
              call: `${fact.step}.${index}`,
              kind: request.kind,
              tool: request.tool,
              input: request.input,
              phase: request.answer === undefined ? "requested" : "completed",
              executions: 0,
              outcome: request.answer ?? null,
              reason: null,
              ticketId: null,
              delegation: null,
              publishedAt: at,
              endedAt: request.answer === undefined ? null : at,
            });
          }
          break;
        case "call_executing":
          change(fact.step, fact.index, { phase: "executing", executions: fact.execution });
          break;
        case "call_awaiting":
          change(fact.step, fact.index, { phase: "awaiting", ticketId: fact.ticketId });
          break;
        case "call_resumed":
          change(fact.step, fact.index, { phase: "executing" });
          break;
        case "call_completed":
          change(fact.step, fact.index, { phase: "completed", outcome: fact.outcome, endedAt: at });
          break;
        case "call_indeterminate":
          change(fact.step, fact.index, { phase: "indeterminate", reason: fact.reason, endedAt: at });
          break;
        case "delegation_opened": {
          const { step, index, delegationId, childRunId } = fact;
          change(step, index, { delegation: { delegationId, childRunId } });
          break;
        }
        case "cancel_requested":
          requests.push({ request: "cancel", at, reason: fact.reason, by: fact.by });
          break;
        case "pause_requested":
          requests.push({ request: "pause", at, reason: fact.reason, by: fact.by });
          break;
        case "continue_requested":
          requests.push({ request: "continue", at, reason: null, by: fact.by });
          break;
        case "run_ended":
          end ??= fact.end;
          break;
        default:
          break;
      }
    }
  }
  return {
    input: header?.input ?? null,
    contract: header?.origin?.contract ?? null,
    limits: header?.limits ?? null,
    user: header?.user ?? null,
    attempts,
    calls: [...calls.values()],
    requests,
    end,
  };
}
