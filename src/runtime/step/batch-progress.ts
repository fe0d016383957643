import type { JsonSchema } from "../../rules/json-schema.ts";
import type { ResultEnvelope, ResumedEnvelope, WaitEnvelope } from "../../domain/child-results/envelope.ts";
import type { DelegationId, TenantId } from "../../domain/id.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import type { Wait } from "../../domain/run/wait.ts";
import {
  APPROVAL_SCHEMA,
  approvalDigest,
  deriveTicketId,
  type TicketKind,
} from "../../domain/ticket/ticket.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import { type CallState, type ToolBatch, callEnded } from "../../domain/tool-batch/tool-batch.ts";
import type { PublicationCatalog } from "../catalog/publication-catalog.ts";
import { acceptedOutcome, admitDelegation, consumptionFacts } from "../delegation/delegate.ts";
import type { LoadedAgent } from "../ports/agent.ts";
import type { InboxRow } from "../ports/store.ts";
import type { Staging } from "./staging.ts";
import type { Launch, ToolExecutions } from "./tool-executions.ts";

/** What moving a batch forward needs to see. Everything it decides goes into `staging`. */
export interface BatchScope {
  readonly tenant: TenantId;
  readonly agent: LoadedAgent;
  readonly catalog: PublicationCatalog;
  readonly executions: ToolExecutions;
  readonly staging: Staging;
  /** Unread envelopes; those that were dealt with are taken out. */
  readonly inbox: Map<DelegationId, InboxRow>;
  /** Milliseconds of the store's clock. */
  readonly now: number;
}

/** Records outcomes of tools that ended. */
export function recordOutcomes(scope: BatchScope): void {
  const { staging, executions } = scope;
  for (const [index, outcome] of executions.finished) {
    const call = openBatch(scope)?.calls[index];
    if (call === undefined || callEnded(call)) continue;
    const { effect } = call.request;
    const timedOut = !outcome.ok && outcome.error.code === "tool_timeout";
    // Told to stop is not stopped: a tool that changes the world may have done so by now (L10).
    if (timedOut && (effect === "idempotent" || effect === "any")) {
      staging.batch({ type: "give_up", index, reason: "timed_out" });
    } else staging.batch({ type: "complete", index, outcome });
    staging.durable = false;
  }
}

/** Records outcomes of tools that ended, answers that persons gave, and sleeps that are over. */
export function settleOwnCalls(scope: BatchScope): void {
  recordOutcomes(scope);
  for (const [index, call] of openBatch(scope)?.calls.entries() ?? []) {
    if (call.phase === "awaiting") settleTicket(scope, index, call);
    else if (call.phase === "executing" && call.request.kind === "sleep") settleSleep(scope, index, call);
  }
}

function settleTicket(
  scope: BatchScope,
  index: number,
  call: CallState & { readonly phase: "awaiting" },
): void {
  const { staging } = scope;
  const { run } = staging;
  const { ticketId } = call;
  if (run.state.ticket?.ticketId !== ticketId) return;
  const answer = run.decided.get(ticketId);
  if (answer === undefined) {
    const due = ticketDueAt(scope);
    if (due === null || scope.now < due) return;
    staging.add({ type: "ticket_closed", ticketId, reason: "deadline" });
    // Committed before anything else is read: a decision that is already there has to forbid it, not to be overtaken.
    staging.durable = false;
    complete(scope, index, failed("ticket_expired", "Nobody answered before the deadline."));
    return;
  }
  const { callDigest } = run.state.ticket;
  staging.add({ type: "ticket_consumed", ticketId, answer });
  if (call.request.kind === "ask") {
    complete(scope, index, { ok: true, value: answer });
    return;
  }
  const { approved, reason } = answer as { readonly approved: boolean; readonly reason?: string };
  if (!approved) {
    complete(scope, index, failed("approval_rejected", reason ?? "The call was not approved."));
  } else if (callDigest !== approvalDigest(call.request.tool, call.request.input)) {
    complete(scope, index, failed("approval_mismatch", "The approval was given for other arguments."));
  } else {
    staging.batch({ type: "resume", index, ticketId });
    staging.batch({ type: "execute", index, maxExecutions: 1 });
  }
}

function settleSleep(scope: BatchScope, index: number, call: CallState): void {
  const due = sleepDueInMs(scope, index, call);
  if (due !== null && due <= 0) complete(scope, index, { ok: true, value: null });
}

/** Reads the inbox: results complete their calls, waits and goings-on move them between executing and awaiting. */
export async function settleInbox(scope: BatchScope): Promise<{ readonly unexpectedAwait: boolean }> {
  const { staging, inbox } = scope;
  let unexpectedAwait = false;
  for (const row of inbox.values()) {
    const { state } = staging.run;
    const delegation = state.delegations.open.find((one) => one.delegationId === row.delegationId);
    inbox.delete(row.delegationId);
    const envelope = JSON.parse(row.body) as ResultEnvelope | WaitEnvelope | ResumedEnvelope;
    if (delegation === undefined) {
      if (envelope.kind === "result") {
        const { delegationId } = row;
        staging.add({
          type: "child_result_discarded",
          delegationId,
          digest: row.digest,
          usage: envelope.usage,
        });
      }
      continue;
    }
    const batch = openBatch(scope);
    const call = batch?.step === delegation.step ? batch.calls[delegation.index] : undefined;
    const { index } = delegation;
    switch (envelope.kind) {
      case "result": {
        const open = call !== undefined && !callEnded(call);
        staging.add(...consumptionFacts(delegation, envelope, row.digest, open ? "consumed" : "discarded"));
        if (!open) break;
        // It went on before it ended, and whoever waits above has to hear that too (L33).
        if (call.phase === "awaiting") staging.batch({ type: "resume", index, ticketId: call.ticketId });
        const target = await scope.catalog.resolve(scope.tenant, delegation.publication);
        complete(scope, index, acceptedOutcome(envelope, target.outputSchema, delegation.target));
        break;
      }
      case "wait":
        staging.waitsRead.push({ delegationId: row.delegationId, digest: row.digest });
        if (call === undefined || callEnded(call) || batch === undefined) break;
        if (batch.mode === "parallel") {
          unexpectedAwait = true;
          staging.batch({ type: "give_up", index, reason: "unexpected_await" });
          staging.add({
            type: "delegation_cancel_requested",
            delegationId: row.delegationId,
            reason: "it awaits inside a parallel batch",
          });
        } else {
          const { ticketId } = envelope;
          staging.batch({ type: "await", index, ticketId, ticketKind: envelope.ticketKind as TicketKind });
        }
        break;
      case "resumed":
        staging.waitsRead.push({ delegationId: row.delegationId, digest: row.digest });
        if (call?.phase === "awaiting") staging.batch({ type: "resume", index, ticketId: call.ticketId });
        break;
      default:
        envelope satisfies never;
    }
  }
  for (const delegationId of staging.run.missingChildren) {
    const delegation = staging.run.state.delegations.open.find((one) => one.delegationId === delegationId);
    if (delegation === undefined) continue;
    const batch = openBatch(scope);
    const call = batch?.step === delegation.step ? batch.calls[delegation.index] : undefined;
    if (call !== undefined && !callEnded(call)) {
      staging.batch({ type: "give_up", index: delegation.index, reason: "child_missing" });
    }
    const treeRunsUsed = delegation.treeRuns;
    staging.add({
      type: "delegation_closed",
      delegationId: delegation.delegationId,
      reason: "child_missing",
      treeRunsUsed,
    });
  }
  return { unexpectedAwait };
}

/**
 * Starts every call that may start now and deals with those that a lost worker left executing (L10).
 * What it returns is begun after the commit, never before (L8).
 */
export async function startCalls(scope: BatchScope): Promise<readonly Launch[]> {
  const launches: Launch[] = [];
  for (let index = 0; ; index++) {
    const batch = openBatch(scope);
    const call = batch?.calls[index];
    if (batch === undefined || call === undefined) return launches;
    if (callEnded(call)) continue;
    if (call.phase === "requested") await start(scope, batch, index, call, launches);
    else if (call.phase === "executing" && call.request.kind === "tool" && !scope.executions.has(index)) {
      if (!launches.some((one) => one.index === index)) recover(scope, batch, index, call, launches);
    }
    const after = openBatch(scope)?.calls[index];
    if (batch.mode === "in_order" && after !== undefined && !callEnded(after)) return launches;
  }
}

async function start(
  scope: BatchScope,
  batch: ToolBatch,
  index: number,
  call: CallState,
  launches: Launch[],
): Promise<void> {
  const { staging, agent } = scope;
  const { request } = call;
  switch (request.kind) {
    case "tool": {
      const tool = agent.tools.get(request.tool);
      if (tool === undefined) {
        complete(
          scope,
          index,
          failed("unknown_tool", `This worker's ${agent.ref} has no tool ${request.tool}.`),
        );
        return;
      }
      if (request.approval === true) {
        const prompt = tool.approvalPrompt(request.input);
        openTicket(
          scope,
          index,
          "approval",
          prompt,
          APPROVAL_SCHEMA,
          approvalDigest(request.tool, request.input),
          null,
        );
        return;
      }
      staging.batch({ type: "execute", index, maxExecutions: tool.maxExecutions });
      launches.push({ step: batch.step, index, request, tool, execution: 1, reconnect: false });
      return;
    }
    case "delegation": {
      const entry = agent.roster.get((request.input as { readonly agent: string }).agent);
      if (entry === undefined) {
        complete(scope, index, failed("unknown_agent", "The target is no longer in the roster."));
        return;
      }
      const target = await scope.catalog.resolve(scope.tenant, entry.ref);
      const admission = admitDelegation(staging.run.state, agent, target, request, {
        step: batch.step,
        index,
      });
      if (!admission.ok) {
        complete(scope, index, admission.answer);
        return;
      }
      staging.batch({ type: "execute", index, maxExecutions: 1 });
      staging.add(...admission.facts);
      staging.addChild(admission.child);
      return;
    }
    case "ask": {
      const ask = request.input as {
        readonly prompt?: string;
        readonly schema?: JsonSchema;
        readonly kind?: TicketKind;
        readonly deadlineMs?: number;
      };
      openTicket(
        scope,
        index,
        ask.kind ?? "input_required",
        ask.prompt ?? "",
        ask.schema ?? true,
        null,
        ask.deadlineMs ?? null,
      );
      return;
    }
    case "sleep":
      staging.batch({ type: "execute", index, maxExecutions: 1 });
      return;
    case "recorded":
      return;
    default:
      request.kind satisfies never;
  }
}

/** A call that an approval or a lost worker left executing without an execution in this process. */
function recover(
  scope: BatchScope,
  batch: ToolBatch,
  index: number,
  call: CallState & { readonly phase: "executing" },
  launches: Launch[],
): void {
  const { staging, agent } = scope;
  const { request } = call;
  const tool = agent.tools.get(request.tool);
  const justApproved = staging.facts.some(
    (fact) => fact.type === "call_executing" && fact.step === batch.step && fact.index === index,
  );
  if (tool !== undefined && justApproved) {
    launches.push({ step: batch.step, index, request, tool, execution: call.execution, reconnect: false });
    return;
  }
  if (tool === undefined || request.replay === "never" || call.execution >= tool.maxExecutions) {
    staging.batch({ type: "give_up", index, reason: "outcome_unknown" });
    return;
  }
  const execution = call.execution + 1;
  staging.batch({ type: "execute", index, maxExecutions: tool.maxExecutions });
  launches.push({
    step: batch.step,
    index,
    request,
    tool,
    execution,
    reconnect: request.replay === "durable",
  });
}

function openTicket(
  scope: BatchScope,
  index: number,
  kind: TicketKind,
  prompt: string,
  schema: JsonSchema,
  callDigest: string | null,
  deadlineInMs: number | null,
): void {
  const { staging, agent } = scope;
  const { header, batch, ticketsOpened } = staging.run.state;
  const call = { step: batch?.step ?? 0, index };
  const ticketId = deriveTicketId(header.runId, call, ticketsOpened);
  const opened: LaneFact = {
    type: "ticket_opened",
    ticketId,
    kind,
    call,
    publication: agent.ref,
    prompt,
    schema,
    callDigest,
    deadlineInMs,
  };
  staging.batch({ type: "await", index, ticketId, ticketKind: kind });
  staging.add(opened);
}

/** What the Run would wait for if it parked now, and in how many milliseconds a timer of its own is due. */
export function parkedOn(scope: BatchScope): { readonly wait: Wait; readonly dueInMs: number | null } {
  const { state } = scope.staging.run;
  const calls = openBatch(scope)?.calls ?? [];
  let dueInMs: number | null = null;
  const sooner = (ms: number | null): void => {
    if (ms !== null && (dueInMs === null || ms < dueInMs)) dueInMs = Math.max(0, ms);
  };
  for (const [index, call] of calls.entries()) {
    if (call.phase === "executing" && call.request.kind === "sleep") sooner(sleepDueInMs(scope, index, call));
  }
  const ticketDue = ticketDueAt(scope);
  if (ticketDue !== null) sooner(ticketDue - scope.now);
  const awaiting = calls.find((call) => call.phase === "awaiting");
  if (awaiting?.phase === "awaiting") {
    return { wait: { on: "ticket", ticketId: awaiting.ticketId, ticketKind: awaiting.ticketKind }, dueInMs };
  }
  if (state.delegations.open.length > 0) {
    const delegationIds = state.delegations.open.map((one) => one.delegationId);
    return { wait: { on: "children", delegationIds }, dueInMs };
  }
  return { wait: { on: "timer" }, dueInMs };
}

/** When the Run's own open ticket can no longer be decided; null when it has none or no deadline. */
function ticketDueAt(scope: BatchScope): number | null {
  const { run } = scope.staging;
  if (run.state.ticket === null || run.ticketDeadlineInMs === null) return null;
  return (run.ticketOpenedAt ?? scope.now) + run.ticketDeadlineInMs;
}

function sleepDueInMs(scope: BatchScope, index: number, call: CallState): number | null {
  if (call.request.kind !== "sleep") return null;
  const ms = (call.request.input as { readonly ms: number }).ms;
  const since = scope.staging.run.executingSince.get(index);
  return since === undefined ? ms : since + ms - scope.now;
}

function complete(scope: BatchScope, index: number, outcome: CallOutcome): void {
  scope.staging.batch({ type: "complete", index, outcome });
}

function openBatch(scope: BatchScope): ToolBatch | undefined {
  const { batch } = scope.staging.run.state;
  return batch?.status === "open" ? batch : undefined;
}
