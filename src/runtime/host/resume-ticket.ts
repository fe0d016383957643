import type { JsonSchema } from "../../rules/json-schema.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { OperationId, PublicationRef, RunId, TenantId, TicketId } from "../../domain/id.ts";
import {
  type Ticket,
  type TicketDecision,
  type TicketKind,
  type TicketRefusal,
  decideTicket,
  decisionDigest,
} from "../../domain/ticket/ticket.ts";
import type { Committer } from "../commit/committer.ts";
import { encodeSignalCommit } from "../commit/encode-commit.ts";
import { isErased } from "../ports/erasure.ts";
import type { Store, TicketRow } from "../ports/store.ts";
import { existingRun } from "./control-run.ts";

export interface OpenTicket {
  readonly ticketId: TicketId;
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly kind: TicketKind;
  readonly prompt: string;
  readonly schema: JsonSchema;
  readonly openedAt: number;
  readonly deadlineAt: number | null;
  readonly status: "open" | "decided" | "closed";
}

export function openTicket(row: TicketRow): OpenTicket {
  const body = isErased(row.body)
    ? { prompt: "(erased)", schema: true as const }
    : (JSON.parse(row.body) as { readonly prompt: string; readonly schema: JsonSchema });
  return {
    ticketId: row.ticketId,
    runId: row.runId,
    rootRunId: row.rootRunId,
    kind: row.kind as TicketKind,
    prompt: body.prompt,
    schema: body.schema,
    openedAt: row.openedAt,
    deadlineAt: row.deadlineAt,
    status: row.status,
  };
}

/**
 * The one ticket that a resume addressed to a Run means: the one that this very decision has decided before, else the
 * Run's own or that of a descendant it waits for. Several open ones need the ticket's id; nothing is guessed (K1.7).
 */
export async function ticketOf(
  store: Store,
  tenant: TenantId,
  runId: RunId,
  decisionId: string | undefined,
): Promise<TicketRow> {
  const { rootRunId } = await existingRun(store, tenant, runId);
  const open = await store.listTickets(tenant, { rootRunId, open: true, limit: 1_000 });
  if (decisionId !== undefined) {
    // Read after the open ones: a question that was opened by this decision's answer never takes the repeat of it.
    for (const ticket of await store.listTickets(tenant, { rootRunId, open: false, limit: 1_000_000 })) {
      if (ticket.decisionId === decisionId && (await isBelow(store, tenant, ticket.runId, runId)))
        return ticket;
    }
  }
  const below: TicketRow[] = [];
  for (const ticket of open) if (await isBelow(store, tenant, ticket.runId, runId)) below.push(ticket);
  const [only] = below;
  if (only !== undefined && below.length === 1) return only;
  throw new ErrandError(
    "TICKET_REQUIRED",
    only === undefined
      ? `${runId} has no open ticket, and no run below it has.`
      : `${below.length} tickets are open below ${runId}: ${below.map((one) => one.ticketId).join(", ")}.`,
    only === undefined ? "Look at `tickets()` for what is open." : "Name the ticket to answer.",
    { details: { ticketIds: below.map((one) => one.ticketId) } },
  );
}

async function isBelow(store: Store, tenant: TenantId, runId: RunId, ancestor: RunId): Promise<boolean> {
  for (let at: RunId | null = runId; at !== null; ) {
    if (at === ancestor) return true;
    at = (await store.getRun(tenant, at))?.parentRunId ?? null;
  }
  return false;
}

const CODES = {
  TICKET_CLOSED: "TICKET_CLOSED",
  TICKET_EXPIRED: "TICKET_CLOSED",
  TICKET_DECIDED: "TICKET_DECIDED",
  TICKET_MISMATCH: "TICKET_MISMATCH",
  TICKET_ANSWER_INVALID: "TICKET_ANSWER_INVALID",
} as const satisfies Record<TicketRefusal, string>;

const FIXES: Record<TicketRefusal, string> = {
  TICKET_CLOSED: "Nothing waits for this answer any more.",
  TICKET_EXPIRED: "Nothing waits for this answer any more.",
  TICKET_DECIDED: "The first decision stands; read the run to see what came of it.",
  TICKET_MISMATCH: "Look at `tickets()` and address the ticket you mean.",
  TICKET_ANSWER_INVALID: "The ticket is still open; send an answer that fits its schema.",
};

/**
 * Decides a ticket once. Everything is checked before anything is written, and once more by the store in the commit
 * itself; the exact repeat of the first decision returns as `repeated` (L33).
 */
export async function resumeTicket(
  store: Store,
  committer: Committer,
  tenant: TenantId,
  decision: TicketDecision,
  signal: AbortSignal,
): Promise<{ readonly runId: RunId; readonly repeated: boolean }> {
  const { ticketId } = decision;
  const row = await store.getTicket(tenant, ticketId);
  if (row === null) {
    throw new ErrandError(
      "NOT_FOUND",
      `There is no ticket ${ticketId}.`,
      "Check the id and the tenant; `tickets()` lists what is open.",
    );
  }
  const verdict = decideTicket(decodeTicket(row), decision, store.now());
  if (!verdict.ok) throw refusal(ticketId, verdict.code, verdict.why);
  const [fact] = verdict.facts;
  if (fact === undefined) return { runId: row.runId, repeated: true };
  const outcome = await committer.commit(
    encodeSignalCommit({
      tenant,
      header: row,
      operationId: `decide:${ticketId}:${decisionDigest(decision).slice(0, 32)}` as OperationId,
      fact,
      ifEnded: "refuse",
      decideTicket: { ticketId, decisionId: decision.decisionId, decisionDigest: decisionDigest(decision) },
    }),
    () => signal,
  );
  switch (outcome.kind) {
    case "committed":
      return { runId: row.runId, repeated: false };
    case "duplicate":
      return { runId: row.runId, repeated: true };
    case "refused":
    case "stale":
    case "conflict": {
      const latest = await store.getTicket(tenant, ticketId);
      const again = latest === null ? undefined : decideTicket(decodeTicket(latest), decision, store.now());
      if (again?.ok === false) throw refusal(ticketId, again.code, again.why);
      if (again?.ok === true && again.facts.length === 0) return { runId: row.runId, repeated: true };
      throw refusal(ticketId, "TICKET_CLOSED", "the run has ended");
    }
    default:
      return outcome satisfies never;
  }
}

function refusal(ticketId: TicketId, code: TicketRefusal, why: string): ErrandError {
  return new ErrandError(CODES[code], `${ticketId} was not answered: ${why}.`, FIXES[code], {
    details: { ticketId },
  });
}

function decodeTicket(row: TicketRow): Ticket {
  const body = JSON.parse(row.body) as {
    readonly publication: PublicationRef;
    readonly call: Ticket["call"];
    readonly prompt: string;
    readonly schema: JsonSchema;
    readonly callDigest: string | null;
  };
  return {
    ticketId: row.ticketId,
    runId: row.runId,
    publication: body.publication,
    kind: row.kind as TicketKind,
    call: body.call,
    prompt: body.prompt,
    schema: body.schema,
    callDigest: body.callDigest,
    deadlineAt: row.deadlineAt,
    status:
      row.status === "open"
        ? { kind: "open" }
        : row.status === "decided"
          ? { kind: "decided", decisionId: row.decisionId ?? "", digest: row.decisionDigest ?? "" }
          : { kind: "closed", reason: row.closeReason ?? "closed" },
  };
}
