import type { LaneFact } from "../../domain/run/run-fact.ts";
import type { RunState } from "../../domain/run/run.ts";
import { approvalDigest, deriveTicketId } from "../../domain/ticket/ticket.ts";
import {
  type BatchCommand,
  type BatchFact,
  callEnded,
  decideBatch,
} from "../../domain/tool-batch/tool-batch.ts";
import { callKeyText } from "../../domain/tool-batch/call-key.ts";
import type { ExpectedRows, ExpectedRun } from "./expected.ts";
import type { Report } from "./problem.ts";
import { checkOpened, checkRead, checkRelation } from "./relation-checks.ts";

/**
 * Checks one lane fact against the state in which it was written. Pure.
 * @param facts all facts of the commit, in order
 * @returns false for a fact that nobody writes; it changes nothing
 */
export function checkLaneFact(
  run: ExpectedRun,
  state: RunState,
  fact: LaneFact,
  facts: readonly LaneFact[],
  rows: ExpectedRows,
  report: Report,
): boolean {
  const { batch } = state;
  switch (fact.type) {
    case "attempt_started":
      if (state.attemptOpen || fact.attempt !== state.attempt + 1) {
        report(
          "fact_not_allowed",
          "attempt_started",
          `attempt ${state.attempt + 1}, none open`,
          fact.attempt,
        );
      }
      return true;
    case "attempt_failed":
      if (!state.attemptOpen || fact.attempt !== state.attempt) {
        report("fact_not_allowed", "attempt_failed", `attempt ${state.attempt}, open`, fact.attempt);
      }
      return true;
    case "step_published":
      if (fact.step !== state.nextStep)
        report("fact_not_allowed", "step_published", state.nextStep, fact.step);
      if (batch?.status === "open") {
        report(
          "fact_not_allowed",
          `step ${fact.step} published`,
          "no open batch",
          `step ${batch.step} is open`,
        );
      }
      if (
        fact.mode === "parallel" &&
        fact.calls.some((call) => call.kind === "ask" || call.approval === true)
      ) {
        report("fact_not_allowed", `step ${fact.step} published`, "in order, a call may await", "parallel");
      }
      return true;
    case "call_executing":
    case "call_awaiting":
    case "call_resumed":
    case "call_completed":
    case "call_indeterminate":
    case "batch_finalized":
      checkBatchFact(run, state, fact, report);
      return true;
    case "delegation_opened":
      checkOpened(state, fact, rows, report);
      authorized(run, state, `delegation ${fact.delegationId} opened`, report);
      return true;
    case "delegation_cancel_requested":
    case "delegation_closed":
      checkRelation(run, state, fact, facts, report);
      return true;
    case "child_result_consumed":
    case "child_result_discarded":
      checkRead(state, fact, facts, rows, report);
      return true;
    case "ticket_opened":
      checkTicket(state, fact, report);
      return true;
    case "ticket_consumed": {
      const ticket = rows.tickets.get(fact.ticketId);
      if (state.ticket?.ticketId !== fact.ticketId || ticket?.status !== "decided") {
        report("fact_not_allowed", `${fact.ticketId} consumed`, "the Run's own, decided", ticket?.status);
      }
      return true;
    }
    case "ticket_closed":
      if (state.ticket?.ticketId !== fact.ticketId) {
        report("fact_not_allowed", `${fact.ticketId} closed`, state.ticket?.ticketId, fact.ticketId);
      }
      return true;
    case "control_observed":
      if (fact.upTo > run.row.signalSeq || fact.upTo <= state.observedSignal) {
        report(
          "fact_not_allowed",
          "control_observed",
          `${state.observedSignal + 1} to ${run.row.signalSeq}`,
          fact.upTo,
        );
      }
      return true;
    case "run_ended":
      checkEnd(run, state, fact, facts, rows, report);
      return true;
    case "history_appended":
    case "parked":
    case "carrier_noted":
    case "continued_as":
      return true;
    default:
      report("facts_unreadable", "a lane fact", "a known type", (fact satisfies never as LaneFact).type);
      return false;
  }
}

/** Something new begins, so the commit must have known of every control (L23). */
function authorized(run: ExpectedRun, state: RunState, what: string, report: Report): void {
  if (state.cancel !== null)
    report("control_ignored", what, "nothing new after a cancel", state.cancel.reason);
  else if (state.observedSignal < run.lastControl) {
    report("control_ignored", what, `signal ${run.lastControl} observed`, state.observedSignal);
  }
}

function checkBatchFact(run: ExpectedRun, state: RunState, fact: BatchFact, report: Report): void {
  const { batch } = state;
  if (batch === null || batch.step !== fact.step) {
    report(
      "fact_not_allowed",
      `${fact.type} of step ${fact.step}`,
      `step ${batch?.step ?? "none"}`,
      fact.step,
    );
    return;
  }
  const place = fact.type === "batch_finalized" ? `step ${fact.step}` : `call ${callKeyText(fact)}`;
  const call = fact.type === "batch_finalized" ? undefined : batch.calls[fact.index];
  const decision = decideBatch(batch, commandFor(fact, call));
  if (!decision.ok) {
    report(
      "fact_not_allowed",
      `${place} ${fact.type}`,
      "allowed by its batch",
      `${decision.code}: ${decision.why}`,
    );
    return;
  }
  const again = decision.facts.find((one) => one.type === fact.type);
  if (again === undefined || JSON.stringify(again) !== JSON.stringify(fact)) {
    report("fact_not_allowed", `${place} ${fact.type}`, again ?? "nothing new", fact);
    return;
  }
  if (call === undefined) return;
  const { kind, replay } = call.request;
  if (fact.type === "call_executing" && (kind === "tool" || kind === "delegation")) {
    authorized(run, state, `${place} begun`, report);
    if (fact.execution > 1 && (kind !== "tool" || replay === "never")) {
      report("call_repeated", `${place} of ${call.request.tool}`, 1, fact.execution);
    }
  }
  if (fact.type === "call_completed" && kind === "tool" && call.phase === "requested" && fact.outcome.ok) {
    report("fact_not_allowed", `${place} completed`, "begun before it is done (L8)", call.phase);
  }
  if (fact.type === "call_indeterminate" && (fact.reason === "not_started") !== !begun(call)) {
    report(
      "fact_not_allowed",
      `${place} indeterminate`,
      begun(call) ? "it had begun" : "not_started",
      fact.reason,
    );
  }
}

function begun(call: {
  readonly phase: string;
  readonly execution?: number;
  readonly request: { readonly kind: string };
}): boolean {
  if (call.phase === "executing") return true;
  // A call that waits for its approval has not begun; a question has, once it is asked.
  return call.phase === "awaiting" && (call.request.kind !== "tool" || (call.execution ?? 0) > 0);
}

function commandFor(fact: BatchFact, call: { readonly phase: string } | undefined): BatchCommand {
  switch (fact.type) {
    case "call_executing":
      return { type: "execute", index: fact.index, maxExecutions: Number.MAX_SAFE_INTEGER };
    case "call_awaiting":
      return { type: "await", index: fact.index, ticketId: fact.ticketId, ticketKind: fact.ticketKind };
    case "call_resumed": {
      const { ticketId } = (call ?? {}) as { readonly ticketId?: string };
      return { type: "resume", index: fact.index, ticketId: ticketId as never };
    }
    case "call_completed":
      return { type: "complete", index: fact.index, outcome: fact.outcome };
    case "call_indeterminate":
      return { type: "give_up", index: fact.index, reason: fact.reason };
    case "batch_finalized":
      return { type: "finalize" };
    default:
      return fact satisfies never;
  }
}

function checkTicket(
  state: RunState,
  fact: LaneFact & { readonly type: "ticket_opened" },
  report: Report,
): void {
  const { header, batch } = state;
  const key = fact.call ?? { step: 0, index: 0 };
  const derived = deriveTicketId(header.runId, key, state.ticketsOpened);
  if (fact.ticketId !== derived) report("id_not_derived", "ticket", derived, fact.ticketId);
  if (state.ticket !== null) {
    report("fact_not_allowed", `${fact.ticketId} opened`, "no other open ticket", state.ticket.ticketId);
  }
  if (fact.call === null) return;
  const call = batch?.step === fact.call.step ? batch.calls[fact.call.index] : undefined;
  if (call?.phase !== "awaiting" || call.ticketId !== fact.ticketId) {
    report("fact_not_allowed", `${fact.ticketId} opened`, "its call awaits it", call?.phase);
    return;
  }
  const digest = fact.kind === "approval" ? approvalDigest(call.request.tool, call.request.input) : null;
  if (fact.callDigest !== digest)
    report("fact_not_allowed", `${fact.ticketId} opened`, digest, fact.callDigest);
}

function checkEnd(
  run: ExpectedRun,
  state: RunState,
  fact: LaneFact & { readonly type: "run_ended" },
  facts: readonly LaneFact[],
  rows: ExpectedRows,
  report: Report,
): void {
  const { header, batch } = state;
  const { runId } = header;
  if (fact !== facts.at(-1)) report("fact_not_allowed", `end of ${runId}`, "its last fact", "not the last");
  if (batch?.status === "open") {
    const open = batch.calls.filter((call) => !callEnded(call)).length;
    report(
      "end_incomplete",
      `end of ${runId}`,
      "a sealed batch (L11)",
      `${open} open calls of step ${batch.step}`,
    );
  }
  if (state.ticket !== null)
    report("end_incomplete", `end of ${runId}`, "no open ticket", state.ticket.ticketId);
  for (const one of state.delegations.open) {
    if (one.status === "open")
      report("end_incomplete", `end of ${runId}`, "its children asked to cancel", one);
  }
  const read = new Set(
    facts.map((one) => (one.type.startsWith("child_result_") && "digest" in one ? one.digest : "")),
  );
  for (const one of state.delegations.open) {
    const row = rows.inbox.get(one.delegationId);
    if (row?.kind === "result" && row.status === "unread" && !read.has(row.digest)) {
      report("end_incomplete", `end of ${runId}`, "its unread results discarded (L17)", one.delegationId);
    }
  }
  if (fact.end.kind === "completed") authorized(run, state, `completion of ${runId}`, report);
}
