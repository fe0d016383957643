import { schemaProblems } from "../../rules/json-schema.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import { chainDigest } from "../../domain/thread/history.ts";
import { deriveTicketId } from "../../domain/ticket/ticket.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";
import { planCalls } from "../delegation/plan-calls.ts";
import type { Move } from "../ports/carrier.ts";
import type { BatchScope } from "./batch-progress.ts";

/** What a driver does after a move is staged. */
export type AfterMove =
  /** Go on; what is staged rides in the next commit. */
  | { readonly next: "advance" }
  /** Commit what is staged: the Run parks, or begins anew. */
  | { readonly next: "commit"; readonly newSession: boolean }
  | { readonly next: "end"; readonly end: RunEnd; readonly usage: Usage | null }
  | {
      readonly next: "fail";
      readonly error: CallError;
      readonly retryable: boolean;
      readonly retryAfterMs: number | null;
      readonly usage: Usage | null;
    };

const PARK: AfterMove = { next: "commit", newSession: false };

/** Stages the facts of a carrier's move. */
export async function applyMove(scope: BatchScope, move: Move): Promise<AfterMove> {
  const { staging, agent } = scope;
  const { run } = staging;
  const { header, ticket, ticketsOpened, nextStep } = run.state;
  const answer = ticket === null ? undefined : run.decided.get(ticket.ticketId);
  // A failed move has not used the answer: the next attempt gets it again.
  if (ticket !== null && answer !== undefined && move.kind !== "fail") {
    staging.add({ type: "ticket_consumed", ticketId: ticket.ticketId, answer });
  }
  switch (move.kind) {
    case "calls": {
      const { calls, mode } = await planCalls(scope.tenant, run.state, agent, scope.catalog, move.calls);
      const { message, usage } = move;
      const historyDigest = message === null ? null : chainDigest(run.historyDigest, message);
      staging.add({ type: "step_published", step: nextStep, mode, calls, message, historyDigest, usage });
      // A function says the same again after a crash; a model has been paid for and may not.
      if (agent.definition.kind === "model") staging.durable = false;
      return { next: "advance" };
    }
    case "complete": {
      const problems = schemaProblems(header.outputSchema, move.output);
      if (problems.length > 0) {
        const what = problems.map((one) => `${one.pointer || "/"}: ${one.message}`).join("; ");
        return {
          next: "fail",
          error: { code: "output_invalid", message: `The result does not fit the output schema: ${what}.` },
          retryable: agent.definition.kind === "model",
          retryAfterMs: null,
          usage: move.usage,
        };
      }
      if (move.message !== null) {
        const digest = chainDigest(run.historyDigest, move.message);
        staging.add({ type: "history_appended", messages: [move.message], digest });
      }
      return { next: "end", end: { kind: "completed", output: move.output }, usage: move.usage };
    }
    case "fail": {
      const { error, retryable, retryAfterMs, usage } = move;
      return { next: "fail", error, retryable, retryAfterMs, usage };
    }
    case "end":
      return { next: "end", end: move.end, usage: move.usage };
    case "wait":
      staging.add({ type: "carrier_noted", note: move.note });
      staging.add({ type: "parked", wait: { on: "peer", detail: move.detail }, dueInMs: move.pollInMs });
      return PARK;
    case "ask": {
      const ticketId = deriveTicketId(header.runId, { step: 0, index: 0 }, ticketsOpened);
      staging.add(
        { type: "carrier_noted", note: move.note },
        {
          type: "ticket_opened",
          ticketId,
          kind: move.ticketKind,
          call: null,
          publication: header.publication,
          prompt: move.prompt,
          schema: move.schema,
          callDigest: null,
          deadlineInMs: null,
        },
        { type: "parked", wait: { on: "ticket", ticketId, ticketKind: move.ticketKind }, dueInMs: null },
      );
      return PARK;
    }
    case "continue_as":
      staging.add({ type: "continued_as", input: move.input });
      return { next: "commit", newSession: true };
    default:
      return move satisfies never;
  }
}
