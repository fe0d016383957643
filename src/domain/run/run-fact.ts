import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Usage } from "../budget/usage.ts";
import type { DelegationFact } from "../delegation/delegations.ts";
import type { DelegationId, PublicationRef, TicketId } from "../id.ts";
import type { HistoryMessage } from "../thread/history.ts";
import type { TicketDecided, TicketKind } from "../ticket/ticket.ts";
import type { CallError } from "../tool-batch/call-outcome.ts";
import type { CallRequest } from "../tool-batch/call-request.ts";
import type { CallKey } from "../tool-batch/call-key.ts";
import type { BatchFact, BatchMode } from "../tool-batch/tool-batch.ts";
import type { RunEnd } from "./run-end.ts";
import type { RunHeader } from "./run-header.ts";
import type { Wait } from "./wait.ts";

/** Written by the holder of the Run's lane, in its commits, under its version and epoch (L4). */
export type LaneFact =
  | { readonly type: "attempt_started"; readonly attempt: number }
  | {
      readonly type: "attempt_failed";
      readonly attempt: number;
      readonly error: CallError;
      readonly retryInMs: number;
      readonly usage: Usage | null;
    }
  | {
      readonly type: "history_appended";
      readonly messages: readonly HistoryMessage[];
      readonly digest: string;
    }
  | {
      readonly type: "step_published";
      readonly step: number;
      readonly mode: BatchMode;
      readonly calls: readonly CallRequest[];
      readonly message: HistoryMessage | null;
      /** Digest of the thread's history up to and with `message`; null when the step adds none. */
      readonly historyDigest: string | null;
      readonly usage: Usage | null;
    }
  | BatchFact
  | DelegationFact
  | {
      readonly type: "child_result_consumed";
      readonly delegationId: DelegationId;
      readonly digest: string;
      readonly usage: Usage | null;
    }
  | {
      readonly type: "child_result_discarded";
      readonly delegationId: DelegationId;
      readonly digest: string;
      /** A discarded result was worked for all the same, so it is charged (L17). */
      readonly usage: Usage | null;
    }
  | {
      readonly type: "ticket_opened";
      readonly ticketId: TicketId;
      readonly kind: TicketKind;
      readonly call: CallKey | null;
      readonly publication: PublicationRef;
      readonly prompt: string;
      readonly schema: JsonSchema;
      readonly callDigest: string | null;
      readonly deadlineInMs: number | null;
    }
  | { readonly type: "ticket_consumed"; readonly ticketId: TicketId; readonly answer: Json }
  | { readonly type: "ticket_closed"; readonly ticketId: TicketId; readonly reason: string }
  | { readonly type: "control_observed"; readonly upTo: number }
  | { readonly type: "parked"; readonly wait: Wait; readonly dueInMs: number | null }
  | { readonly type: "carrier_noted"; readonly note: Json }
  | { readonly type: "continued_as"; readonly input: Json }
  | {
      readonly type: "run_ended";
      readonly end: RunEnd;
      readonly usage: Usage | null;
      readonly treeRunsUsed: number;
    };

/** Written by others onto the Run: its creator, a host, a sweep. They never move the thread's version (L4). */
export type SignalFact =
  | { readonly type: "run_created"; readonly header: RunHeader; readonly delayMs: number }
  | { readonly type: "cancel_requested"; readonly reason: string; readonly by: string | null }
  | { readonly type: "pause_requested"; readonly reason: string; readonly by: string | null }
  | { readonly type: "continue_requested"; readonly by: string | null }
  | TicketDecided
  | { readonly type: "child_missing"; readonly delegationId: DelegationId }
  | {
      readonly type: "late_result";
      readonly delegationId: DelegationId;
      readonly digest: string;
      readonly verdict: "same" | "conflict";
    };

/** One line of the append-only log. */
export type RunFact = LaneFact | SignalFact;
