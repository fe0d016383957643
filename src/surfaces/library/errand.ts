import type { Json } from "../../rules/json.ts";
import { type Effect, effectLedger } from "../../domain/effect/effect-ledger.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import { type RunId, type TenantId, parseRunId, parseTicketId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { TicketKind } from "../../domain/ticket/ticket.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import { Committer, sleep } from "../../runtime/commit/committer.ts";
import type { PublicationCatalog } from "../../runtime/catalog/publication-catalog.ts";
import type { Publication } from "../../runtime/catalog/publication.ts";
import {
  type Control,
  type ControlOptions,
  controlRun,
  existingRun,
} from "../../runtime/host/control-run.ts";
import { type OpenTicket, openTicket, resumeTicket, ticketOf } from "../../runtime/host/resume-ticket.ts";
import { type StartOptions, startRun } from "../../runtime/host/start-run.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type { IdSource } from "../../runtime/ports/id-source.ts";
import type { LiveBus } from "../../runtime/ports/live-bus.ts";
import { isErased } from "../../runtime/ports/erasure.ts";
import type {
  FeedName,
  FeedPage,
  LogRow,
  RowState,
  RunRow,
  Store,
  WorkerRow,
} from "../../runtime/ports/store.ts";
import type { Telemetry } from "../../runtime/ports/telemetry.ts";
import { decodeFacts } from "../../runtime/run/loaded-run.ts";
import { readRun } from "../../runtime/run/read-run.ts";
import type { RuntimeSettings } from "../../runtime/step/runtime-settings.ts";
import { type TaskNode, taskOf, taskTree } from "../../runtime/view/task-tree.ts";
import { whyWaiting } from "../../runtime/view/why-waiting.ts";
import type { VerifyReport } from "../../runtime/verify/problem.ts";
import { type VerifyOptions, verifyStore } from "../../runtime/verify/verify-store.ts";
import type { Worker } from "../../runtime/worker/worker.ts";
import { EndWatch } from "./end-watch.ts";
import { RunHandle } from "./run-handle.ts";
import type { ResultOptions, RunStatusView } from "./run-view.ts";
import { type StreamEvent, type StreamOptions, streamTree } from "./stream.ts";

export interface ErrandParts {
  readonly tenant: TenantId;
  readonly store: Store;
  readonly catalog: PublicationCatalog;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly bus: LiveBus;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  readonly worker: Worker | null;
  readonly pollMs: number;
}

export interface ResumeOptions {
  /** Names this decision; its exact repeat is the same decision. Drawn when absent. */
  readonly decisionId?: string;
  readonly by?: string;
  /** Refused unless the ticket is of this kind. */
  readonly kind?: TicketKind;
  /** Refused unless the ticket is owned by this Run. */
  readonly runId?: string;
}

export interface ListOptions {
  readonly states?: readonly RowState[];
  readonly rootsOnly?: boolean;
  readonly limit?: number;
  readonly offset?: number;
}

/**
 * The library door: start Runs, wait for results, watch, answer, cancel. One instance serves one tenant; everything it does
 * can be done again from another process on the same store.
 */
export class Errand implements AsyncDisposable {
  readonly #parts: ErrandParts;
  readonly #committer: Committer;
  readonly #closing = new AbortController();
  readonly #ends: EndWatch;

  constructor(parts: ErrandParts) {
    this.#parts = parts;
    this.#ends = new EndWatch(parts.store, parts.tenant, parts.clock, parts.pollMs);
    if (parts.worker !== null) parts.worker.onEnded = (runId, end) => this.#ends.ended(runId, end);
    this.#committer = new Committer(parts.store, parts.clock, parts.telemetry);
  }

  get tenant(): TenantId {
    return this.#parts.tenant;
  }

  get store(): Store {
    return this.#parts.store;
  }

  /** The worker in this process, or null for one that only starts and watches. */
  get worker(): Worker | null {
    return this.#parts.worker;
  }

  /**
   * Starts a root Run and returns at once.
   * @throws ErrandError UNKNOWN_AGENT, INVALID_INPUT, START_CONFLICT
   */
  async start<Input, Output>(
    agent: AgentDefinition<Input, Output> | string,
    input: Input,
    options: StartOptions = {},
  ): Promise<RunHandle<Output>> {
    this.#open();
    const publication = await this.#publicationOf(agent as AgentDefinition | string);
    const value = await this.#parsedInput(publication, input);
    const draw = (): string => this.#parts.ids.next();
    const { signal } = this.#closing;
    const started = await startRun(this.#committer, this.tenant, publication, value, options, draw, signal);
    if (started.created && options.threadId === undefined)
      this.#parts.worker?.expect(started.header, options.delayMs ?? 0);
    return new RunHandle<Output>(this, started.runId, started.threadId);
  }

  /** Starts a root Run and waits for its result. */
  async run<Input, Output>(
    agent: AgentDefinition<Input, Output>,
    input: Input,
    options: StartOptions & ResultOptions = {},
  ): Promise<Output> {
    const { timeoutMs, signal, ...start } = options;
    const handle = await this.start(agent, input, start);
    return this.result<Output>(handle.runId, { timeoutMs, signal });
  }

  /** A handle on a Run that was started elsewhere or before. */
  handle<Output = Json>(runId: string): RunHandle<Output> {
    return new RunHandle<Output>(this, parseRunId(runId), null);
  }

  /**
   * Waits for a Run's end and returns its output.
   * @throws ErrandError RUN_FAILED, RUN_CANCELED, RUN_STOPPED, RUN_INDETERMINATE (details.end says how), RUN_ERASED, WAIT_TIMEOUT
   */
  async result<Output = Json>(runId: string, options: ResultOptions = {}): Promise<Output> {
    const end = await this.end(runId, options);
    if (end.kind === "completed") return end.output as Output;
    throw endError(parseRunId(runId), end);
  }

  /**
   * Waits for a Run's end, however it ends.
   * @throws ErrandError RUN_ERASED, WAIT_TIMEOUT
   */
  async end(runId: string, options: ResultOptions = {}): Promise<RunEnd> {
    const id = parseRunId(runId);
    const { timeoutMs, signal } = options;
    const until = timeoutMs === undefined ? null : this.#parts.clock.monotonic() + timeoutMs;
    for (;;) {
      this.#open();
      signal?.throwIfAborted();
      const leftMs = until === null ? null : until - this.#parts.clock.monotonic();
      // Listening begins before looking, so an end that comes in between is heard.
      const ear = this.#listen(id, leftMs, signal);
      try {
        const row = await existingRun(this.store, this.tenant, id);
        if (row.state === "ended") return await this.#endOf(row);
        if (leftMs !== null && leftMs <= 0) {
          const why = await whyWaiting(this.store, this.tenant, row);
          throw new ErrandError(
            "WAIT_TIMEOUT",
            `${id} has not ended within ${timeoutMs} ms; it is still ${row.state}. ${why}`,
            "The run goes on: wait again, or cancel it.",
            { details: { runId: id, state: row.state } },
          );
        }
        const end = await ear.heard;
        if (end !== null) return end;
      } finally {
        ear.forget();
      }
    }
  }

  /** `heard` resolves with the end, or with null: it may have ended, the time is up, the signal aborts, this Errand closes. */
  #listen(
    runId: RunId,
    leftMs: number | null,
    signal: AbortSignal | undefined,
  ): { readonly heard: Promise<RunEnd | null>; forget(): void } {
    let tell: (end: RunEnd | null) => void = () => undefined;
    const heard = new Promise<RunEnd | null>((resolve) => (tell = resolve));
    const hear = (): void => tell(null);
    const forgetEnd = this.#ends.watch(runId, tell);
    const cancelTimer =
      leftMs === null ? () => undefined : this.#parts.clock.timer(Math.max(0, leftMs), hear);
    signal?.addEventListener("abort", hear, { once: true });
    const forget = (): void => {
      forgetEnd();
      cancelTimer();
      signal?.removeEventListener("abort", hear);
    };
    return { heard, forget };
  }

  /** One Run as it stands, with the reason why it is not running. */
  async status(runId: string): Promise<RunStatusView> {
    const row = await existingRun(this.store, this.tenant, parseRunId(runId));
    return { ...taskOf(row), why: await whyWaiting(this.store, this.tenant, row) };
  }

  /** The task tree below a Run, rolled up. */
  async tree(runId: string): Promise<TaskNode> {
    return taskTree(this.store, this.tenant, parseRunId(runId));
  }

  async list(options: ListOptions = {}): Promise<readonly TaskNode[]> {
    const rows = await this.store.listRuns(this.tenant, { ...options, limit: options.limit ?? 50 });
    return rows.map(taskOf);
  }

  /** Committed facts and live deltas of a Run and everything below it, resumable by `seq`. */
  stream(runId: string, options: StreamOptions = {}): AsyncGenerator<StreamEvent, void, void> {
    const { store, bus, clock, tenant, pollMs } = this.#parts;
    return streamTree({ store, bus, clock, tenant, pollMs }, parseRunId(runId), options);
  }

  /** Open tickets, of one tree or of all; each is listed once, by the Run that owns it. */
  async tickets(
    filter: { readonly rootRunId?: string; readonly runId?: string; readonly all?: boolean } = {},
  ): Promise<readonly OpenTicket[]> {
    const rows = await this.store.listTickets(this.tenant, {
      ...(filter.rootRunId === undefined ? {} : { rootRunId: parseRunId(filter.rootRunId) }),
      ...(filter.runId === undefined ? {} : { runId: parseRunId(filter.runId) }),
      ...(filter.all === true ? {} : { open: true }),
      limit: 1_000,
    });
    return rows.map(openTicket);
  }

  /**
   * Answers a ticket: by its id, or by a Run that waits for exactly one, at any height of the tree.
   * @throws ErrandError TICKET_REQUIRED, TICKET_CLOSED, TICKET_DECIDED, TICKET_MISMATCH, TICKET_ANSWER_INVALID, NOT_FOUND
   */
  async resume(
    target: string,
    answer: Json,
    options: ResumeOptions = {},
  ): Promise<{ readonly runId: RunId; readonly repeated: boolean }> {
    this.#open();
    const ticketId = target.startsWith("tkt_")
      ? parseTicketId(target)
      : (await ticketOf(this.store, this.tenant, parseRunId(target), options.decisionId)).ticketId;
    const decision = {
      ticketId,
      decisionId: options.decisionId ?? this.#parts.ids.next(),
      answer,
      by: options.by ?? null,
      expect: {
        ...(options.kind === undefined ? {} : { kind: options.kind }),
        ...(options.runId === undefined ? {} : { runId: parseRunId(options.runId) }),
      },
    };
    return resumeTicket(this.store, this.#committer, this.tenant, decision, this.#closing.signal);
  }

  /** Asks a Run and everything below it to cancel. The answer is that it was asked; `end()` tells when it is confirmed. */
  cancel(
    runId: string,
    options: ControlOptions = {},
  ): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
    return this.#control(runId, "cancel", options);
  }

  /** Asks a Run to pause at its next safe point. */
  pause(
    runId: string,
    options: ControlOptions = {},
  ): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
    return this.#control(runId, "pause", options);
  }

  /** Lets a paused Run go on. */
  continue(
    runId: string,
    options: ControlOptions = {},
  ): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
    return this.#control(runId, "continue", options);
  }

  /** Every log entry of one Run, oldest first. */
  async log(runId: string): Promise<readonly LogRow[]> {
    const id = parseRunId(runId);
    await existingRun(this.store, this.tenant, id);
    const rows: LogRow[] = [];
    for (let after = 0; ; ) {
      const page = await this.store.readLog(this.tenant, { runId: id }, after, 1_000);
      rows.push(...page);
      const last = page.at(-1);
      if (last === undefined || page.length < 1_000) return rows;
      after = last.seq;
    }
  }

  /** What a Run's tools did to the world, as far as it is known. */
  async effects(runId: string): Promise<readonly Effect[]> {
    const rows = await this.log(runId);
    return effectLedger(
      runId,
      rows.flatMap((row) => decodeFacts(row.body)),
    );
  }

  /** The provider-visible messages of a Run's thread. */
  async history(runId: string): Promise<readonly HistoryMessage[]> {
    const id = parseRunId(runId);
    await existingRun(this.store, this.tenant, id);
    return (await readRun(this.store, this.tenant, id))?.history ?? [];
  }

  workers(): Promise<readonly WorkerRow[]> {
    return this.store.listWorkers(this.tenant);
  }

  /** A page of a feed; pass its cursor to read on. Nothing is ever committed behind a cursor (L7). */
  feed(feed: FeedName, after: string | null, limit = 100): Promise<FeedPage> {
    return this.store.readFeed(this.tenant, feed, after, limit);
  }

  /** Publishes an agent that was not listed at creation and returns its ref. This process does not carry it. */
  async publish(agent: AgentDefinition): Promise<Publication> {
    this.#open();
    const loaded = this.#parts.catalog.load(agent);
    await this.#parts.catalog.publish(this.tenant);
    return this.#parts.catalog.resolve(this.tenant, loaded.ref);
  }

  /** The newest publication of a name, or the one under an exact ref. */
  resolve(nameOrRef: string): Promise<Publication> {
    return this.#publicationOf(nameOrRef);
  }

  /** Rebuilds every row of this tenant from its log and tells every difference (L2); reads only. */
  verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return verifyStore(this.store, this.tenant, options);
  }

  /** Waits `ms` of this Errand's clock; for hosts that poll. */
  sleep(ms: number, signal: AbortSignal = this.#closing.signal): Promise<void> {
    return sleep(this.#parts.clock, ms, signal);
  }

  /** Hands running work back and closes the store. What does not reach a safe point within `graceMs` is recovered later. */
  async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const failures: unknown[] = [];
    await this.#parts.worker?.stop(options.graceMs ?? 5_000).catch((error: unknown) => failures.push(error));
    this.#closing.abort(closedError());
    this.#ends.close();
    await this.store.close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "Errand did not close cleanly");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #control(
    runId: string,
    control: Control,
    options: ControlOptions,
  ): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
    this.#open();
    const draw = (): string => this.#parts.ids.next();
    return controlRun(
      this.store,
      this.#committer,
      this.tenant,
      parseRunId(runId),
      control,
      options,
      draw,
      this.#closing.signal,
    );
  }

  async #publicationOf(agent: AgentDefinition | string): Promise<Publication> {
    const { catalog } = this.#parts;
    if (typeof agent === "string") {
      return agent.includes("@")
        ? catalog.resolve(this.tenant, agent as never)
        : catalog.head(this.tenant, agent);
    }
    const ref = catalog.refOf(agent);
    if (ref === undefined) {
      throw new ErrandError(
        "UNKNOWN_AGENT",
        `${agent.name} was not given to createErrand.`,
        "List it in `agents`, or `publish` it first.",
      );
    }
    return catalog.resolve(this.tenant, ref);
  }

  async #parsedInput(publication: Publication, input: unknown): Promise<Json> {
    const loaded = this.#parts.catalog.loaded(publication.ref);
    if (loaded === undefined) return input as Json;
    const parsed = await loaded.definition.parseInput(input);
    if (parsed.ok) return parsed.value;
    throw new ErrandError(
      "INVALID_INPUT",
      `The input does not fit ${publication.name}: ${parsed.message.replace(/\.$/, "")}.`,
      "Send an input that fits the agent's schema.",
    );
  }

  async #endOf({ runId, summary }: RunRow): Promise<RunEnd> {
    if (isErased(summary)) {
      throw new ErrandError(
        "RUN_ERASED",
        `${runId} has ended, and its content was erased.`,
        "Start a new run if the work is wanted again.",
        { details: { runId } },
      );
    }
    const run = await readRun(this.store, this.tenant, runId);
    if (run?.state.status.kind === "ended") return run.state.status.end;
    throw new ErrandError("NOT_FOUND", `The log of ${runId} does not hold its end.`, "Run `errand verify`.");
  }

  #open(): void {
    if (this.#closing.signal.aborted) throw closedError();
  }
}

function closedError(): ErrandError {
  return new ErrandError("CLOSED", "This Errand is closed.", "Create a new one on the same store.");
}

function endError(runId: RunId, end: Exclude<RunEnd, { kind: "completed" }>): ErrandError {
  const details = { runId, end };
  switch (end.kind) {
    case "failed":
      return new ErrandError(
        "RUN_FAILED",
        `${runId} failed: ${end.error.code}: ${end.error.message}.`,
        "Read its log; start a new run when the cause is gone.",
        { details },
      );
    case "canceled":
      return new ErrandError(
        "RUN_CANCELED",
        `${runId} was canceled: ${end.reason}.`,
        "Start a new run if the work is still wanted.",
        { details },
      );
    case "stopped":
      return new ErrandError(
        "RUN_STOPPED",
        `${runId} was stopped (${end.reason}): ${end.detail}.`,
        "Raise the limit it names, or divide the work.",
        { details },
      );
    case "indeterminate":
      return new ErrandError(
        "RUN_INDETERMINATE",
        `The outcome of ${runId} is unknown: ${end.reason}.`,
        "Look at its effects before you start it again.",
        { details },
      );
    default:
      return end satisfies never;
  }
}
