import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { RunId } from "../../domain/id.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";

/** What a peer says of one piece of work that was started under our child run id. */
export type RemoteStatus =
  | { readonly kind: "working"; readonly detail: string }
  | {
      readonly kind: "input_required";
      /** The peer's own name for the question, so that an answer never meets another one (K20.5). */
      readonly questionId: string;
      readonly prompt: string;
      readonly schema: JsonSchema;
    }
  | { readonly kind: "completed"; readonly output: Json; readonly usage: Usage | null }
  | { readonly kind: "failed"; readonly error: CallError; readonly usage: Usage | null }
  | { readonly kind: "canceled"; readonly reason: string }
  /** The peer does not know the child id. */
  | { readonly kind: "unknown" };

export interface RemoteStart {
  readonly childRunId: RunId;
  readonly agent: string;
  readonly goal: string;
  readonly input: Json;
  readonly outputSchema: JsonSchema;
}

/**
 * An agent that is carried elsewhere. Every call names the child run id, so a repeat of any of them meets the same work.
 * Implementations have their own retry policy for what passes; what is left is thrown as an `ErrandError`:
 * `ADAPTER_CONFIGURATION` (somebody must change something, the fix says what) or `ADAPTER_CONNECTION` (try again later).
 */
export interface RemoteAgentPort {
  /** Starts the work or finds it already started; never makes a second one. */
  start(start: RemoteStart, signal: AbortSignal): Promise<RemoteStatus>;
  status(childRunId: RunId, signal: AbortSignal): Promise<RemoteStatus>;
  /** Answers one question; a repeat of the same answer is the same answer. */
  answer(childRunId: RunId, questionId: string, answer: Json, signal: AbortSignal): Promise<RemoteStatus>;
  /** Asks to cancel; the status tells when the peer has confirmed. */
  cancel(childRunId: RunId, reason: string, signal: AbortSignal): Promise<RemoteStatus>;
  /** After a restart on our side: finds the work again, however the peer keeps it. */
  reconnect(childRunId: RunId, signal: AbortSignal): Promise<RemoteStatus>;
}
