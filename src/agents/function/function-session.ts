import type { ErrandError } from "../../domain/errand-error.ts";
import type { CallOutcome } from "../../domain/tool-batch/call-outcome.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { jsonCopy } from "../../rules/json-copy.ts";
import type { Json } from "../../rules/json.ts";
import type { CarrierSession, Move, MoveContext, WantedCall } from "../../runtime/ports/carrier.ts";
import type { RecordedCall } from "../../runtime/ports/journal.ts";
import { type ParsedJson, parseJson } from "../agent-options.ts";
import {
  type FoundCall,
  callFailed,
  failMove,
  journalFullMove,
  mismatchMove,
  thrownMove,
} from "./function-failure.ts";
import {
  type FunctionBody,
  type FunctionLife,
  SessionContext,
  heard,
  never,
  refused,
} from "./session-context.ts";

/*
 * One claim's worth of a durable function: it turns the function's promises into moves, and the journal back into answers.
 *
 * F1 Answers are delivered in committed order: the lowest unread step at once and in index order, then a tick, then the next.
 * F2 A step is delivered only when the function has made each of its calls again, with the same tool and the same input.
 * F3 A new call is wanted only when every recorded answer has been delivered; all calls of one tick are one batch.
 * F4 Once the function has ended, been refused or been disposed of, its calls never settle and nothing of it is heard.
 */

export const JOURNAL_WARNING = 1_000;
export const JOURNAL_LIMIT = 10_000;

interface OpenCall extends FoundCall {
  /** Known without asking anybody: taken when the call is published. */
  readonly known: ((context: MoveContext) => Json) | undefined;
  resolve(value: Json): void;
  reject(error: ErrandError): void;
}

interface Waiter {
  readonly signal: AbortSignal;
  readonly onAbort: () => void;
  resolve(move: Move): void;
}

export class FunctionSession implements CarrierSession, FunctionLife {
  readonly body: FunctionBody;
  readonly #open = new Map<string, OpenCall>();
  #keyed: Map<string, { readonly call: string; readonly answer: Promise<Json> }> | null = null;
  #context: MoveContext | null = null;
  #waiter: Waiter | null = null;
  #outcome: Move | null = null;
  #cursor = 0;
  /** The function has come to its end; its outcome may still be on its way through the output schema. */
  #settled = false;
  #disposed = false;
  #warned = false;
  #tick: NodeJS.Immediate | null = null;
  #patience: NodeJS.Timeout | null = null;
  #controller: AbortController | null = null;

  constructor(body: FunctionBody) {
    this.body = body;
  }

  prompt(): readonly [] {
    return [];
  }

  next(context: MoveContext, signal: AbortSignal): Promise<Move> {
    const first = this.#context === null;
    this.#context = context;
    return new Promise((resolve, reject) => {
      if (signal.aborted || this.#disposed) {
        reject(signal.aborted ? signal.reason : new Error("The session is disposed of."));
        return;
      }
      const onAbort = (): void => {
        this.#waiter = null;
        this.#stopClocks();
        this.#controller?.abort(signal.reason);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiter = { signal, onAbort, resolve };
      if (first) this.#start(context);
      else this.#advance();
    });
  }

  dispose(): void {
    this.#disposed = true;
    this.#stopClocks();
    this.#waiter?.signal.removeEventListener("abort", this.#waiter.onAbort);
    this.#waiter = null;
    this.#open.clear();
    this.#keyed = null;
    this.#controller?.abort(new DOMException("The run is no longer carried here.", "AbortError"));
  }

  /** The Run as the function sees it. Only the function asks, and it never runs before the first move was asked for. */
  get run(): MoveContext {
    if (this.#context === null) throw new Error("The function has not started.");
    return this.#context;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#disposed) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get replaying(): boolean {
    return this.ended || this.#cursor < this.run.journal.length;
  }

  get ended(): boolean {
    return this.#disposed || this.#settled;
  }

  issue(site: string, tool: string, input: unknown, known?: (run: MoveContext) => Json): Promise<Json> {
    if (this.ended) return never();
    let copy: Json;
    try {
      copy = jsonCopy(input);
    } catch (cause) {
      return refused(
        "INVALID_INPUT",
        `Call ${site} of ${tool} has an input that cannot be stored: ${(cause as Error).message}.`,
        "Pass plain JSON values.",
      );
    }
    if (!site.startsWith("#")) return this.#opened(site, tool, copy, known);
    const call = canonicalJson([tool, copy]);
    this.#keyed ??= new Map();
    const same = this.#keyed.get(site);
    if (same === undefined) {
      const answer = this.#opened(site, tool, copy, known);
      this.#keyed.set(site, { call, answer });
      return answer;
    }
    if (same.call === call) return same.answer;
    return refused(
      "INVALID_INPUT",
      `Key ${JSON.stringify(site.slice(1))} was used for ${same.call} and now for ${call} (tool, input).`,
      "Use a key for one call only.",
    );
  }

  async continueAs(state: unknown): Promise<never> {
    if (this.ended) return never();
    const parsed = await this.body.parseInput(state);
    if (!parsed.ok) {
      return refused(
        "INVALID_INPUT",
        `Run ${this.run.header.runId} cannot continue as this state: ${parsed.message}.`,
        "Give `ctx.continueAs` what the agent's input schema accepts.",
      );
    }
    if (!this.ended) this.#end({ kind: "continue_as", input: parsed.value });
    return never();
  }

  #start(context: MoveContext): void {
    new Promise((resolve) =>
      resolve(this.body.run(new SessionContext(this, ""), jsonCopy(context.input))),
    ).then(
      (output) => this.#returned(output),
      (error: unknown) => {
        if (!this.ended) this.#end(thrownMove(error));
      },
    );
    this.#schedule();
  }

  #returned(output: unknown): void {
    if (this.ended) return;
    this.#settled = true;
    if (this.body.output !== null) {
      parseJson(this.body.output, output).then(
        (parsed) => this.#completed(parsed),
        (error: unknown) => this.#completed({ ok: false, message: String(error) }),
      );
      return;
    }
    try {
      this.#completed({ ok: true, value: jsonCopy(output) });
    } catch (error) {
      this.#completed({ ok: false, message: (error as Error).message });
    }
  }

  #completed(output: ParsedJson): void {
    this.#end(
      output.ok
        ? { kind: "complete", output: output.value, message: null, usage: null }
        : failMove(
            { code: "output_invalid", message: `${this.body.name} returned: ${output.message}.` },
            false,
          ),
    );
  }

  #end(outcome: Move): void {
    this.#settled = true;
    this.#outcome = outcome;
    this.#advance();
  }

  #opened(site: string, tool: string, input: Json, known: OpenCall["known"]): Promise<Json> {
    return heard(
      new Promise((resolve, reject) => {
        this.#open.set(site, { site, tool, input, known, resolve, reject });
        this.#schedule();
      }),
    );
  }

  /** One tick later every promise that could settle has, and the function waits for calls or for somebody else. */
  #schedule(): void {
    if (this.#waiter === null || this.#tick !== null) return;
    this.#tick = setImmediate(() => {
      this.#tick = null;
      this.#advance();
    });
  }

  #advance(): void {
    if (this.#waiter === null || this.#disposed) return;
    const { journal } = this.run;
    if (this.#outcome !== null) this.#answer(this.#checkedOutcome(this.#outcome, journal));
    else if (this.#settled) return;
    else if (this.#cursor < journal.length) this.#deliver(journal);
    else if (this.#open.size > 0) this.#want(journal.length);
  }

  #deliver(journal: readonly RecordedCall[]): void {
    const step = journal[this.#cursor]?.step;
    const answers: { readonly call: OpenCall; readonly answer: CallOutcome }[] = [];
    let missing: RecordedCall | null = null;
    for (let at = this.#cursor; journal[at]?.step === step; at++) {
      const recorded = journal[at];
      if (recorded === undefined) break;
      const call = this.#openCall(recorded);
      if (call === undefined) missing ??= recorded;
      else if (!sameCall(recorded, call)) {
        this.#refuse(mismatchMove(this.run.header.runId, recorded, call));
        return;
      } else answers.push({ call, answer: recorded.answer });
    }
    if (missing !== null) {
      this.#awaitMissing(missing);
      return;
    }
    this.#stopClocks();
    this.#cursor += answers.length;
    for (const { call, answer } of answers) {
      this.#open.delete(call.site);
      if (answer.ok) call.resolve(jsonCopy(answer.value));
      else call.reject(callFailed(call, answer.error));
    }
    this.#schedule();
  }

  /**
   * A recorded call was not made again. If the function waits for none of its calls it waits for foreign work, as it did
   * when the record was made; otherwise it may have been changed, which shows only by nothing more happening.
   */
  #awaitMissing(missing: RecordedCall): void {
    if (this.#open.size === 0 || this.#patience !== null) return;
    const { replayPatienceMs } = this.body;
    this.#patience = setTimeout(() => {
      this.#patience = null;
      const [waiting] = this.#open.values();
      const instead = waiting === undefined ? "" : ` and waits for ${waiting.tool} at site ${waiting.site}`;
      const found = `the function did not make that call again within ${replayPatienceMs} ms${instead}`;
      this.#refuse(mismatchMove(this.run.header.runId, missing, found));
    }, replayPatienceMs);
  }

  #want(recorded: number): void {
    const context = this.run;
    const total = recorded + this.#open.size;
    if (total > JOURNAL_LIMIT) {
      this.#refuse(journalFullMove(context.header.runId, JOURNAL_LIMIT));
      return;
    }
    if (total >= JOURNAL_WARNING && recorded < JOURNAL_WARNING && !this.#warned) {
      this.#warned = true;
      context.warn(
        `Run ${context.header.runId} of ${this.body.name} has ${total} recorded calls; each start replays them all. ` +
          `Call ctx.continueAs(state) well before ${JOURNAL_LIMIT}.`,
      );
    }
    const calls: WantedCall[] = [];
    for (const { site, tool, input, known } of this.#open.values()) {
      calls.push(
        known === undefined
          ? { tool, input, site }
          : { tool, input, site, answer: { ok: true, value: known(context) } },
      );
    }
    this.#answer({ kind: "calls", message: null, calls, usage: null });
  }

  /** An end counts only if the record holds nothing that the function did not do on its way there. */
  #checkedOutcome(outcome: Move, journal: readonly RecordedCall[]): Move {
    if (outcome.kind === "fail" && outcome.retryable) return outcome;
    const context = this.run;
    for (; this.#cursor < journal.length; this.#cursor++) {
      const recorded = journal[this.#cursor];
      if (recorded === undefined) break;
      const call = this.#openCall(recorded);
      if (call === undefined || !sameCall(recorded, call)) {
        return mismatchMove(context.header.runId, recorded, call ?? "the function ended without that call");
      }
      this.#open.delete(call.site);
    }
    const [unmade] = this.#open.values();
    if (outcome.kind !== "fail" && unmade !== undefined) {
      context.warn(
        `Run ${context.header.runId} of ${this.body.name} ended before ${this.#open.size} of its calls were made, ` +
          `the first at site ${unmade.site} (${unmade.tool}). Await every call.`,
      );
    }
    return outcome;
  }

  #openCall(recorded: RecordedCall): OpenCall | undefined {
    return recorded.site === null ? undefined : this.#open.get(recorded.site);
  }

  #refuse(move: Move): void {
    this.#settled = true;
    this.#outcome = move;
    this.#cursor = this.run.journal.length;
    this.#open.clear();
    this.#answer(move);
  }

  #answer(move: Move): void {
    const waiter = this.#waiter;
    if (waiter === null) return;
    this.#waiter = null;
    this.#stopClocks();
    waiter.signal.removeEventListener("abort", waiter.onAbort);
    waiter.resolve(move);
  }

  #stopClocks(): void {
    if (this.#tick !== null) clearImmediate(this.#tick);
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#tick = null;
    this.#patience = null;
  }
}

function sameCall(recorded: RecordedCall, call: FoundCall): boolean {
  if (recorded.tool !== call.tool) return false;
  return recorded.input === call.input || canonicalJson(recorded.input) === canonicalJson(call.input);
}
