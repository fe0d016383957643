import { type Decision, accept, refuse, unchanged } from "../decision.ts";
import type { DelegationId } from "../id.ts";

/*
 * The child-result inbox of one parent: undelivered envelopes, never a child's state.
 *
 * I1 Absent → unread → consumed, or → discarded when the parent ended first (L17).
 * I2 The same delivery twice is one delivery; of two that differ the first stands and the second is refused (L16).
 * I3 A consumed or discarded envelope is never read again.
 */

export type EnvelopeStatus = "unread" | "consumed" | "discarded";

export interface InboxEntry {
  readonly digest: string;
  readonly status: EnvelopeStatus;
}

export type ChildResultInbox = ReadonlyMap<DelegationId, InboxEntry>;

export type InboxFact =
  | {
      readonly type: "result_recorded";
      readonly delegationId: DelegationId;
      readonly digest: string;
      readonly late: boolean;
    }
  | { readonly type: "child_result_consumed"; readonly delegationId: DelegationId; readonly digest: string }
  | { readonly type: "child_result_discarded"; readonly delegationId: DelegationId; readonly digest: string };

export type InboxCommand =
  | {
      readonly type: "record";
      readonly delegationId: DelegationId;
      readonly digest: string;
      readonly parentEnded: boolean;
    }
  | { readonly type: "consume"; readonly delegationId: DelegationId; readonly digest: string }
  | { readonly type: "discard"; readonly delegationId: DelegationId; readonly digest: string };

export type InboxRefusal = "RESULT_CONFLICT" | "NOT_DELIVERED" | "ALREADY_READ";

export function decideInbox(
  inbox: ChildResultInbox,
  command: InboxCommand,
): Decision<InboxFact, InboxRefusal> {
  const { delegationId, digest } = command;
  const entry = inbox.get(delegationId);
  switch (command.type) {
    case "record":
      if (entry === undefined) {
        return accept({ type: "result_recorded", delegationId, digest, late: command.parentEnded });
      }
      return entry.digest === digest
        ? unchanged()
        : refuse("RESULT_CONFLICT", `${delegationId} already delivered ${entry.digest}`);
    case "consume":
      if (entry === undefined) return refuse("NOT_DELIVERED", `${delegationId} has delivered nothing`);
      if (entry.status !== "unread") return refuse("ALREADY_READ", `${delegationId} is ${entry.status}`);
      return accept({ type: "child_result_consumed", delegationId, digest: entry.digest });
    case "discard":
      if (entry === undefined) return refuse("NOT_DELIVERED", `${delegationId} has delivered nothing`);
      if (entry.status === "discarded") return unchanged();
      if (entry.status === "consumed") return refuse("ALREADY_READ", `${delegationId} is consumed`);
      return accept({ type: "child_result_discarded", delegationId, digest: entry.digest });
    default:
      return command satisfies never;
  }
}

export function evolveInbox(inbox: ChildResultInbox, fact: InboxFact): ChildResultInbox {
  const next = new Map(inbox);
  switch (fact.type) {
    case "result_recorded":
      next.set(fact.delegationId, { digest: fact.digest, status: fact.late ? "discarded" : "unread" });
      return next;
    case "child_result_consumed":
      next.set(fact.delegationId, { digest: fact.digest, status: "consumed" });
      return next;
    case "child_result_discarded":
      next.set(fact.delegationId, { digest: fact.digest, status: "discarded" });
      return next;
    default:
      return fact satisfies never;
  }
}
