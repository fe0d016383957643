import type { Json } from "../../rules/json.ts";
import type { TicketId } from "../../domain/id.ts";
import { type RunState, createdRun, evolveRun } from "../../domain/run/run.ts";
import type { RunFact } from "../../domain/run/run-fact.ts";
import {
  EMPTY_HISTORY_DIGEST,
  type HistoryMessage,
  chainDigest,
  toolMessage,
} from "../../domain/thread/history.ts";
import { callAnswer } from "../../domain/tool-batch/tool-batch.ts";
import type { RecordedCall } from "../ports/journal.ts";
import { isErased } from "../ports/erasure.ts";
import type { LogRow } from "../ports/store.ts";

/**
 * A Run decoded into memory: its state, its thread's history and its own journal, all folded from the log.
 * Facts are applied as they are staged; if their commit does not stand, the whole object is thrown away and read again.
 */
export class LoadedRun {
  state: RunState;
  /** Thread version after the last applied lane commit. */
  version: number;
  /** Number of the last signal entry applied. */
  appliedSignal = 0;
  /** Messages of the thread, oldest first. */
  readonly history: HistoryMessage[];
  historyDigest: string;
  /** Calls of this Run that have their answer, in committed order. */
  readonly journal: RecordedCall[] = [];
  /** Decisions on the Run's own tickets that the lane has not consumed. */
  readonly decided = new Map<TicketId, Json>();
  /** When each executing call of the open batch was committed, by index; sleeps are due relative to it. */
  readonly executingSince = new Map<number, number>();
  /** When the own ticket was opened. */
  ticketOpenedAt: number | null = null;
  ticketDeadlineInMs: number | null = null;
  /** When the next attempt may begin; null if it may at once, or has begun. */
  attemptDueAt: number | null = null;
  /** Children reported missing by a sweep. */
  readonly missingChildren = new Set<string>();
  summary = "";
  private conversational = false;

  private constructor(state: RunState, history: HistoryMessage[], historyDigest: string, version: number) {
    this.state = state;
    this.history = history;
    this.historyDigest = historyDigest;
    this.version = version;
  }

  /** A Run whose creation this process has just committed itself, on a thread of its own. */
  static created(fact: RunFact & { readonly type: "run_created" }): LoadedRun {
    return new LoadedRun(createdRun(fact), [], EMPTY_HISTORY_DIGEST, 0);
  }

  /**
   * Folds a thread's log, oldest first, into the named Run. Earlier Runs of the thread leave their messages only.
   * Undefined when the log does not create the Run, or its content was erased.
   */
  static fold(runId: string, rows: Iterable<LogRow>): LoadedRun | undefined {
    const others = new Map<string, LoadedRun>();
    const history: HistoryMessage[] = [];
    let digest = EMPTY_HISTORY_DIGEST;
    let version = 0;
    let found: LoadedRun | undefined;
    let gap = false;
    for (const row of rows) {
      const facts = decodeFacts(row.body);
      gap ||= isErased(row.body);
      let run = row.runId === runId ? found : others.get(row.runId);
      for (const fact of facts) {
        if (fact.type === "run_created") {
          run = new LoadedRun(createdRun(fact), history, digest, row.version);
          if (fact.delayMs > 0) run.attemptDueAt = row.at + fact.delayMs;
          if (row.runId === runId) found = run;
          else others.set(row.runId, run);
        } else if (run !== undefined) {
          run.historyDigest = digest;
          run.apply(fact, row.at);
          const named = gap ? namedDigest(fact) : null;
          if (named !== null) {
            // The messages before it were erased, so it cannot be computed: it is believed.
            run.historyDigest = named;
            gap = false;
          }
          digest = run.historyDigest;
        }
      }
      if (row.source === "lane") version = row.version;
      else if (run !== undefined) run.appliedSignal = Math.max(run.appliedSignal, row.signal);
    }
    if (found !== undefined) {
      // A Run that queued behind others goes on with the thread's version, not with the one that its creation met.
      found.version = version;
      found.historyDigest = digest;
    }
    return found;
  }

  /** @param at milliseconds of the store's clock at the fact's commit; null while it is only staged */
  apply(fact: RunFact, at: number | null): void {
    const ended = this.state.status.kind === "ended";
    this.state = evolveRun(this.state, fact);
    if (ended) return;
    switch (fact.type) {
      case "history_appended":
        for (const message of fact.messages) this.append(message);
        break;
      case "step_published":
        this.conversational = fact.message !== null;
        this.executingSince.clear();
        if (fact.message !== null) this.append(fact.message);
        break;
      case "call_executing":
        if (at !== null) this.executingSince.set(fact.index, at);
        break;
      case "batch_finalized":
        this.publishBatch(fact.step);
        break;
      case "attempt_started":
        this.attemptDueAt = null;
        break;
      case "attempt_failed":
        this.attemptDueAt = at === null ? null : at + fact.retryInMs;
        break;
      case "ticket_opened":
        this.ticketOpenedAt = at;
        this.ticketDeadlineInMs = fact.deadlineInMs;
        break;
      case "ticket_decided":
        this.decided.set(fact.ticketId, fact.answer);
        break;
      case "ticket_consumed":
      case "ticket_closed":
        this.decided.delete(fact.ticketId);
        break;
      case "child_missing":
        this.missingChildren.add(fact.delegationId);
        break;
      case "continued_as":
        this.journal.length = 0;
        break;
      default:
        break;
    }
  }

  /** Gives the facts that were staged without a time the time of their commit. */
  timed(facts: readonly RunFact[], at: number): void {
    for (const fact of facts) {
      if (fact.type === "call_executing") {
        if (fact.step === this.state.batch?.step) this.executingSince.set(fact.index, at);
      } else if (fact.type === "ticket_opened") this.ticketOpenedAt = at;
      else if (fact.type === "attempt_failed") this.attemptDueAt = at + fact.retryInMs;
    }
  }

  private append(message: HistoryMessage): void {
    this.history.push(message);
    this.historyDigest = chainDigest(this.historyDigest, message);
  }

  private publishBatch(step: number): void {
    const batch = this.state.batch;
    if (batch === null || batch.step !== step) return;
    for (const [index, call] of batch.calls.entries()) {
      const answer = callAnswer(call);
      if (answer === undefined) continue;
      const { site, tool, input } = call.request;
      this.journal.push({ step, index, site: site ?? null, tool, input, answer });
    }
    if (this.conversational) this.append(toolMessage(batch));
  }
}

/** The digest of the history up to and with the fact, if it names one. */
function namedDigest(fact: RunFact): string | null {
  if (fact.type === "history_appended") return fact.digest;
  return fact.type === "step_published" ? fact.historyDigest : null;
}

/**
 * A log entry's body as facts, none where they were erased. The text was written by this code from typed facts, so it is
 * trusted as such.
 */
export function decodeFacts(body: string): readonly RunFact[] {
  if (isErased(body)) return [];
  return JSON.parse(body) as readonly RunFact[];
}
