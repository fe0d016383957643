import type { DelegationId, TicketId } from "../id.ts";
import type { TicketKind } from "../ticket/ticket.ts";

/** What a parked Run waits for. */
export type Wait =
  | { readonly on: "children"; readonly delegationIds: readonly DelegationId[] }
  | { readonly on: "timer" }
  | { readonly on: "peer"; readonly detail: string }
  | { readonly on: "retry"; readonly attempt: number }
  | { readonly on: "ticket"; readonly ticketId: TicketId; readonly ticketKind: TicketKind }
  | { readonly on: "continue" };

/** The Run state in which a wait is shown. */
export function waitState(wait: Wait): "waiting" | "awaiting" | "paused" {
  switch (wait.on) {
    case "children":
    case "timer":
    case "peer":
    case "retry":
      return "waiting";
    case "ticket":
      return "awaiting";
    case "continue":
      return "paused";
    default:
      return wait satisfies never;
  }
}
