import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import type { TicketKind } from "../../domain/ticket/ticket.ts";
import type { CallError, CallOutcome } from "../../domain/tool-batch/call-outcome.ts";
import type { LiveDelta } from "./live-bus.ts";
import type { RecordedCall } from "./journal.ts";

/** A call that a carrier wants made; the runtime resolves the tool, its policies and its identity. */
export interface WantedCall {
  readonly tool: string;
  readonly input: Json;
  readonly providerCallId?: string;
  /** Function agents: branch path and ordinal, or the explicit key. */
  readonly site?: string;
  /** The call is malformed, and this is its answer (invalid JSON, unknown tool). */
  readonly answer?: CallOutcome;
}

/** What a carrier answers when asked for its next move at a safe point. */
export type Move =
  | {
      readonly kind: "calls";
      readonly message: HistoryMessage | null;
      readonly calls: readonly WantedCall[];
      readonly usage: Usage | null;
    }
  | {
      readonly kind: "complete";
      readonly output: Json;
      readonly message: HistoryMessage | null;
      readonly usage: Usage | null;
    }
  | {
      readonly kind: "fail";
      readonly error: CallError;
      /** False ends the Run; true starts a new attempt while the retry budget lasts. */
      readonly retryable: boolean;
      /** What the provider asked for; the runtime waits at least so long. */
      readonly retryAfterMs: number | null;
      readonly usage: Usage | null;
    }
  /** End as the carrier says: a remote child's own end, for example. */
  | { readonly kind: "end"; readonly end: RunEnd; readonly usage: Usage | null }
  /** Nothing to do before `pollInMs`; `note` is remembered. */
  | { readonly kind: "wait"; readonly pollInMs: number; readonly note: Json; readonly detail: string }
  /** The carrier itself needs an answer; it comes back as `answer` of the next move. */
  | {
      readonly kind: "ask";
      readonly ticketKind: TicketKind;
      readonly prompt: string;
      readonly schema: JsonSchema;
      readonly note: Json;
    }
  /** Function agents: start over with a new input and an empty journal. */
  | { readonly kind: "continue_as"; readonly input: Json };

/** What a carrier sees of its Run. */
export interface MoveContext {
  readonly header: RunHeader;
  readonly attempt: number;
  readonly input: Json;
  /** Messages of the thread, oldest first; the runtime appends, a carrier only reads. */
  readonly history: readonly HistoryMessage[];
  /** Calls of this Run with their answers, for carriers that replay. */
  readonly journal: readonly RecordedCall[];
  readonly note: Json;
  /** The answer to the carrier's own last `ask`, once. */
  readonly answer: Json | undefined;
  readonly stepsTaken: number;
  readonly now: number;
  emit(delta: LiveDelta): void;
  /** Tells whoever operates the system something they should act on (a journal that grows too long). */
  warn(message: string): void;
}

/** One claim's worth of a carrier at work on one Run. */
export interface CarrierSession {
  /** Messages to append before the first move of a Run: its prompt, built from the contract or the input alone. */
  prompt(context: MoveContext): readonly HistoryMessage[];
  /**
   * The next move. Called at safe points only: no call of the Run is open.
   * @param signal aborts when the Run is canceled or its claim is lost.
   */
  next(context: MoveContext, signal: AbortSignal): Promise<Move>;
  /** For work that runs elsewhere: asks the peer to stop, and tells whether it has confirmed that. */
  cancel?(context: MoveContext, reason: string): Promise<"confirmed" | "unconfirmed">;
  /** Gives up memory; nothing is committed. */
  dispose(): void;
}
