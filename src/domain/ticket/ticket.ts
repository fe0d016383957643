import type { Json } from "../../rules/json.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { type JsonSchema, schemaProblems } from "../../rules/json-schema.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import { type Decision, accept, refuse, unchanged } from "../decision.ts";
import type { PublicationRef, RunId, TicketId } from "../id.ts";
import type { CallKey } from "../tool-batch/call-key.ts";

/*
 * A ticket: the only permission to continue an awaiting Run.
 *
 * T1 It is owned by the deepest awaiting Run; ancestors refer to it, so it lists once (L33, K1.4).
 * T2 It is decided once: the first decision wins, its exact repeat is the same decision, another one is refused (L33, K2.1).
 * T3 A rejected resume leaves it open.
 * T4 An approval is bound to a digest of the call and its arguments, so it never covers other arguments (K2.3).
 */

export type TicketKind = "approval" | "input_required" | "blocked" | "external";

export interface Ticket {
  readonly ticketId: TicketId;
  readonly runId: RunId;
  readonly publication: PublicationRef;
  readonly kind: TicketKind;
  readonly call: CallKey | null;
  /** What the person is asked. */
  readonly prompt: string;
  /** What the answer must fit. */
  readonly schema: JsonSchema;
  /** Digest of tool and arguments as the person saw them; null unless it is an approval. */
  readonly callDigest: string | null;
  /** Milliseconds of the store's clock after which it can no longer be decided; null never. */
  readonly deadlineAt: number | null;
  readonly status:
    | { readonly kind: "open" }
    | { readonly kind: "decided"; readonly decisionId: string; readonly digest: string }
    | { readonly kind: "closed"; readonly reason: string };
}

/** What a host sends to decide a ticket. `expect` fields that are given must match. */
export interface TicketDecision {
  readonly ticketId: TicketId;
  readonly decisionId: string;
  readonly answer: Json;
  readonly by: string | null;
  readonly expect: {
    readonly runId?: RunId;
    readonly publication?: PublicationRef;
    readonly kind?: TicketKind;
  };
}

export interface TicketDecided {
  readonly type: "ticket_decided";
  readonly ticketId: TicketId;
  readonly decisionId: string;
  readonly answer: Json;
  readonly by: string | null;
}

export type TicketRefusal =
  | "TICKET_CLOSED"
  | "TICKET_DECIDED"
  | "TICKET_MISMATCH"
  | "TICKET_EXPIRED"
  | "TICKET_ANSWER_INVALID";

/** The answer to an approval. */
export const APPROVAL_SCHEMA: JsonSchema = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"],
  additionalProperties: false,
};

export function deriveTicketId(runId: RunId, call: CallKey, occasion: number): TicketId {
  return `tkt_${sha256Hex(`ticket:${runId}:${call.step}.${call.index}:${occasion}`).slice(0, 32)}` as TicketId;
}

/** What an approval is bound to: the tool and the exact arguments. */
export function approvalDigest(tool: string, input: Json): string {
  return sha256Hex(canonicalJson([tool, input]));
}

export function decisionDigest(decision: TicketDecision): string {
  return sha256Hex(canonicalJson([decision.decisionId, decision.answer]));
}

/** @param now milliseconds of the store's clock */
export function decideTicket(
  ticket: Ticket,
  decision: TicketDecision,
  now: number,
): Decision<TicketDecided, TicketRefusal> {
  const { expect } = decision;
  if (expect.runId !== undefined && expect.runId !== ticket.runId) {
    return refuse("TICKET_MISMATCH", `it belongs to ${ticket.runId}, not to ${expect.runId}`);
  }
  if (expect.publication !== undefined && expect.publication !== ticket.publication) {
    return refuse("TICKET_MISMATCH", `it was asked by ${ticket.publication}, not by ${expect.publication}`);
  }
  if (expect.kind !== undefined && expect.kind !== ticket.kind) {
    return refuse("TICKET_MISMATCH", `it is of kind ${ticket.kind}, not ${expect.kind}`);
  }
  switch (ticket.status.kind) {
    case "decided":
      return ticket.status.digest === decisionDigest(decision)
        ? unchanged()
        : refuse("TICKET_DECIDED", `it was decided by ${ticket.status.decisionId}`);
    case "closed":
      return refuse("TICKET_CLOSED", `it was closed: ${ticket.status.reason}`);
    case "open":
      break;
    default:
      return ticket.status satisfies never;
  }
  if (ticket.deadlineAt !== null && now >= ticket.deadlineAt) {
    return refuse("TICKET_EXPIRED", `its deadline passed ${now - ticket.deadlineAt} ms ago`);
  }
  const problems = schemaProblems(ticket.schema, decision.answer);
  if (problems.length > 0) {
    return refuse(
      "TICKET_ANSWER_INVALID",
      problems
        .map((problem) => `${problem.pointer === "" ? "answer" : problem.pointer}: ${problem.message}`)
        .join("; "),
    );
  }
  return accept({
    type: "ticket_decided",
    ticketId: ticket.ticketId,
    decisionId: decision.decisionId,
    answer: decision.answer,
    by: decision.by,
  });
}
