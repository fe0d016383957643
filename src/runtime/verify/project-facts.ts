import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import type { Delivery, LogRow } from "../ports/store.ts";
import type { ExpectedRows, ExpectedRun } from "./expected.ts";

/** What a fact does to the rows of relationships, envelopes and tickets. */
export function projectFact(rows: ExpectedRows, run: ExpectedRun, fact: LaneFact, row: LogRow): void {
  const { delegations, inbox, tickets } = rows;
  switch (fact.type) {
    case "delegation_opened":
      if (delegations.has(fact.delegationId)) return;
      delegations.set(fact.delegationId, {
        delegationId: fact.delegationId,
        rootRunId: run.row.rootRunId,
        parentRunId: run.row.runId,
        childRunId: fact.childRunId,
        step: fact.step,
        index: fact.index,
        target: fact.target,
        status: "open",
        contractVersion: fact.contractVersion,
        contractDigest: fact.contractDigest,
        intentDelivered: false,
      });
      return;
    case "delegation_cancel_requested":
    case "delegation_closed": {
      const relation = delegations.get(fact.delegationId);
      if (relation === undefined) return;
      if (fact.type === "delegation_closed") relation.status = "closed";
      else if (relation.status === "open") relation.status = "cancel_requested";
      return;
    }
    case "child_result_consumed":
    case "child_result_discarded": {
      const entry = inbox.get(fact.delegationId);
      if (entry?.digest !== fact.digest) return;
      entry.status = fact.type === "child_result_consumed" ? "consumed" : "discarded";
      return;
    }
    case "ticket_opened":
      if (tickets.has(fact.ticketId)) return;
      tickets.set(fact.ticketId, {
        ticketId: fact.ticketId,
        runId: run.row.runId,
        rootRunId: run.row.rootRunId,
        kind: fact.kind,
        status: "open",
        openedAt: row.at,
        deadlineAt: fact.deadlineInMs === null ? null : row.at + fact.deadlineInMs,
        body: canonicalJson(fact as unknown as Json),
        decisionId: null,
        decisionDigest: null,
        closeReason: null,
      });
      return;
    case "ticket_closed": {
      const ticket = tickets.get(fact.ticketId);
      if (ticket?.status !== "open") return;
      ticket.status = "closed";
      ticket.closeReason = fact.reason;
      return;
    }
    default:
      return;
  }
}

/** One envelope a relationship: a result stands, anything else gives way to what comes after it (L15, L16). */
export function projectDelivery(rows: ExpectedRows, delivery: Delivery): void {
  const { inbox, runs, delegations } = rows;
  const before = inbox.get(delivery.delegationId);
  if (before?.kind === "result") return;
  const parent = runs.get(delivery.parentRunId);
  const live = parent !== undefined && parent.state !== null;
  inbox.set(delivery.delegationId, { ...delivery, status: live ? "unread" : "discarded" });
  if (parent === undefined) return;
  raiseSignal(parent, false);
  if (live || delivery.kind !== "result") return;
  const relation = delegations.get(delivery.delegationId);
  if (relation !== undefined) relation.status = "closed";
}

/** Somebody else than the holder wrote onto the Run. */
export function raiseSignal(run: ExpectedRun, control: boolean): void {
  run.row.signalSeq += 1;
  if (control) run.row.controlSeq += 1;
  run.raised = true;
  if (run.state === null) return;
  run.dueAt = undefined;
  if (run.states.some((state) => state === "waiting" || state === "awaiting" || state === "paused")) {
    run.states = ["ready", "running"];
  } else if (control && run.row.lane && run.states.includes("created")) run.states = ["ready", "running"];
}
