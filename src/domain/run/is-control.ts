import type { RunFact } from "./run-fact.ts";

/**
 * Whether a commit that authorizes something new must have seen this fact (L23). A person's decision is one, so that a
 * decision that comes at the last moment beats the deadline that was about to close its ticket.
 */
export function isControl(fact: RunFact): boolean {
  switch (fact.type) {
    case "cancel_requested":
    case "pause_requested":
    case "continue_requested":
    case "ticket_decided":
      return true;
    default:
      return false;
  }
}
