import { setTimeout as pause } from "node:timers/promises";
import { ErrandError } from "../../domain/errand-error.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";
import type { CarrierSession, Move, MoveContext } from "../../runtime/ports/carrier.ts";
import type { RemoteAgentPort, RemoteStatus } from "../../runtime/ports/remote-agent.ts";
import type { SchemaReader } from "../../runtime/ports/standard-schema.ts";
import { parseJson } from "../agent-options.ts";
import { type RemoteNote, answerTo, noteJson, readNote, withAnswer } from "./remote-note.ts";

/*
 * One claim's worth of a Run that a peer carries. Every move asks the peer once and then parks or ends.
 *
 * M1 Every request names the child run id, so whatever is repeated meets the same work; nothing here counts on being first.
 * M2 A question is put to a person once. A peer that asks an answered question again gets the same answer.
 * M3 The first end that the peer reports is the end; a session asks no further and never changes its mind.
 * M4 Work that was started and that the peer no longer knows is indeterminate; it is never started a second time.
 */

/** What a session needs of its agent. */
export interface RemoteBody {
  readonly name: string;
  readonly remoteName: string;
  readonly port: RemoteAgentPort;
  readonly pollMs: number;
  readonly maxPollMs: number;
  /** Converts the peer's output; null if its schema converts nothing. */
  readonly output: SchemaReader | null;
}

const CANCEL_POLLS = 3;
const CANCEL_DEADLINE_MS = 4_000;

export class RemoteSession implements CarrierSession {
  readonly #body: RemoteBody;
  #end: Move | null = null;
  #connected = false;

  constructor(body: RemoteBody) {
    this.#body = body;
  }

  prompt(): readonly [] {
    return [];
  }

  async next(context: MoveContext, signal: AbortSignal): Promise<Move> {
    signal.throwIfAborted();
    if (this.#end !== null) return this.#end;
    try {
      return await this.#asked(context, signal);
    } catch (error) {
      signal.throwIfAborted();
      return adapterFailure(this.#body.name, error);
    }
  }

  /** With a deadline of its own: the Run's signal has aborted before this is called. */
  async cancel(context: MoveContext, reason: string): Promise<"confirmed" | "unconfirmed"> {
    const { port, pollMs } = this.#body;
    const { runId } = context.header;
    const signal = AbortSignal.timeout(CANCEL_DEADLINE_MS);
    const started = readNote(context.note) !== null;
    try {
      let status = await port.cancel(runId, reason, signal);
      for (let poll = 0; poll < CANCEL_POLLS && !stopped(status, started); poll++) {
        await pause(Math.min(pollMs, 250) * 2 ** poll, undefined, { signal });
        status = await port.status(runId, signal);
      }
      return stopped(status, started) ? "confirmed" : "unconfirmed";
    } catch {
      return "unconfirmed"; // whatever went wrong, the peer has not said that it stopped
    }
  }

  dispose(): void {
    this.#end = null;
  }

  async #asked(context: MoveContext, signal: AbortSignal): Promise<Move> {
    const { port, remoteName } = this.#body;
    const { header, input, answer } = context;
    const { runId } = header;
    const noted = readNote(context.note);
    if (noted === null) {
      const goal = header.origin?.contract.goal ?? `Do the work of ${remoteName} on the given input.`;
      const { outputSchema } = header;
      const status = await port.start(
        { childRunId: runId, agent: remoteName, goal, input, outputSchema },
        signal,
      );
      this.#connected = true;
      return await this.#move(status, { questionId: null, answered: [], polls: 0 });
    }
    let note = noted;
    let status = this.#connected ? null : await port.reconnect(runId, signal);
    this.#connected = true;
    if (answer !== undefined && note.questionId !== null) {
      const sent = { questionId: note.questionId, answer };
      note = withAnswer(note, sent);
      if (status === null || status.kind === "working") {
        status = await port.answer(runId, sent.questionId, answer, signal);
      }
    }
    status ??= await port.status(runId, signal);
    const again = status.kind === "input_required" ? answerTo(note, status.questionId) : undefined;
    if (again !== undefined) status = await port.answer(runId, again.questionId, again.answer, signal);
    return await this.#move(status, note);
  }

  async #move(status: RemoteStatus, note: RemoteNote): Promise<Move> {
    switch (status.kind) {
      case "working":
        return this.#wait(note, status.detail);
      case "input_required":
        if (answerTo(note, status.questionId) !== undefined) {
          return this.#wait(note, "the peer has not taken its answer yet");
        }
        return {
          kind: "ask",
          ticketKind: "input_required",
          prompt: status.prompt,
          schema: status.schema,
          note: noteJson({ questionId: status.questionId, answered: note.answered, polls: 0 }),
        };
      case "completed":
        return this.#ended(await this.#completed(status));
      case "failed":
        return this.#ended({ ...failure(status.error, false), usage: status.usage });
      case "canceled":
        return this.#ended({
          kind: "end",
          end: { kind: "canceled", reason: status.reason, confirmed: true },
          usage: null,
        });
      case "unknown":
        return this.#ended({
          kind: "end",
          end: { kind: "indeterminate", reason: "remote_lost" },
          usage: null,
        });
      default:
        return status satisfies never;
    }
  }

  async #completed(status: Extract<RemoteStatus, { kind: "completed" }>): Promise<Move> {
    const { output, usage } = status;
    if (this.#body.output === null) return { kind: "complete", output, message: null, usage };
    const parsed = await parseJson(this.#body.output, output);
    return parsed.ok
      ? { kind: "complete", output: parsed.value, message: null, usage }
      : {
          ...failure(
            { code: "output_invalid", message: `${this.#body.name} returned: ${parsed.message}.` },
            false,
          ),
          usage,
        };
  }

  #wait(note: RemoteNote, detail: string): Move {
    const { pollMs, maxPollMs } = this.#body;
    const pollInMs = Math.min(maxPollMs, pollMs * 2 ** Math.min(note.polls, 30));
    return { kind: "wait", pollInMs, detail, note: noteJson({ ...note, polls: note.polls + 1 }) };
  }

  #ended(move: Move): Move {
    this.#end = move;
    return move;
  }
}

/** True if nothing of the work is left running at the peer. */
function stopped(status: RemoteStatus, started: boolean): boolean {
  switch (status.kind) {
    case "completed":
    case "failed":
    case "canceled":
      return true;
    case "unknown":
      return !started; // work that never was needs no end, lost work may still be running
    case "working":
    case "input_required":
      return false;
    default:
      return status satisfies never;
  }
}

function failure(error: CallError, retryable: boolean): Extract<Move, { kind: "fail" }> {
  return { kind: "fail", error, retryable, retryAfterMs: null, usage: null };
}

function adapterFailure(agent: string, error: unknown): Move {
  if (ErrandError.is(error) && error.code === "ADAPTER_CONFIGURATION") {
    return failure({ code: "adapter_configuration", message: error.message }, false);
  }
  if (ErrandError.is(error) && error.code === "ADAPTER_CONNECTION") {
    return failure({ code: "adapter_connection", message: error.message }, true);
  }
  const message = error instanceof Error ? error.message : String(error);
  return failure({ code: "adapter_error", message: `The port of ${agent} failed: ${message}` }, true);
}
