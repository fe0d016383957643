import { schemaProblems } from "../../rules/json-schema.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type { DelegationId } from "../../domain/id.ts";
import { isControl } from "../../domain/run/is-control.ts";
import type { LaneFact, RunFact, SignalFact } from "../../domain/run/run-fact.ts";
import { type RunState, createdRun, evolveRun } from "../../domain/run/run.ts";
import { waitState } from "../../domain/run/wait.ts";
import { EMPTY_HISTORY_DIGEST, chainDigest, toolMessage } from "../../domain/thread/history.ts";
import { decisionDigest } from "../../domain/ticket/ticket.ts";
import { envelopes, isLifecycle } from "../commit/encode-commit.ts";
import { isErased } from "../ports/erasure.ts";
import type { Delivery, LogRow } from "../ports/store.ts";
import { encodeSummary } from "../run/run-summary.ts";
import { ErasedRuns } from "./erased-runs.ts";
import { type ExpectedRun, type ExpectedThread, nothingExpected } from "./expected.ts";
import { checkLaneFact } from "./lane-checks.ts";
import type { Problem, ProblemCode, Report } from "./problem.ts";
import { projectDelivery, projectFact, raiseSignal } from "./project-facts.ts";
import { checkOrigin } from "./relation-checks.ts";

/*
 * Reads a tenant's log from its beginning, entry by entry, and keeps what every row must say. It holds Runs, relationships,
 * envelopes and tickets, of ended Runs the rows alone; never a history.
 *
 * Whether a park took effect is no fact: it depends on the signals that its writer had seen. Where one came between the
 * two lane commits, the row may be parked or not; elsewhere it must be.
 */
export class LogFold {
  readonly rows: ReturnType<typeof nothingExpected> = nothingExpected();
  readonly erased = new ErasedRuns();
  /** Positions of the entries that belong into the lifecycle feed. */
  readonly lifecycle: number[] = [];
  entries = 0;
  liveRuns = 0;
  readonly #add: (found: Problem) => void;
  readonly #operations = new Set<string>();
  #commit: LogRow[] = [];

  /** @param add told of every problem, in the order of the log */
  constructor(add: (found: Problem) => void) {
    this.#add = add;
  }

  /** The next entry. A commit's entries are judged together, when its last one is known. */
  add(row: LogRow): void {
    if (row.operationId !== null) this.flush();
    this.#commit.push(row);
  }

  /** No entry of the last commit is still to come. */
  flush(): void {
    const commit = this.#commit;
    const [first] = commit;
    if (first === undefined) return;
    this.#commit = [];
    this.entries += commit.length;
    this.#checkOperation(first, commit);
    const readable = commit.filter(
      (row) => !this.erased.takes(row, this.rows, this.#thread(row), this.#report(row)),
    );
    const decoded = readable.map((row) => ({ row, facts: this.#decoded(row) }));
    const opened = new Map<string, RunFact & { readonly type: "delegation_opened" }>();
    let deliveries: readonly Delivery[] = [];
    for (const { row, facts } of decoded) {
      if (isLifecycle(facts)) this.lifecycle.push(row.seq);
      if (row.source === "lane") {
        deliveries = this.#guarded(row, () => this.#lane(row, facts as readonly LaneFact[])) ?? [];
        for (const fact of facts) if (fact.type === "delegation_opened") opened.set(fact.childRunId, fact);
      } else if (row.signal === 0) this.#guarded(row, () => this.#created(row, facts, opened));
      else for (const fact of facts) this.#guarded(row, () => this.#signal(row, fact as SignalFact));
    }
    for (const [childRunId, fact] of opened) {
      if (commit.some((row) => row.runId === childRunId)) continue;
      this.#report(first)(
        "child_differs",
        `${fact.delegationId} opened`,
        `${childRunId} created with it`,
        "no child",
      );
    }
    for (const delivery of deliveries) projectDelivery(this.rows, delivery);
    for (const { row, facts } of decoded) {
      if (row.source === "lane") this.#afterLane(row, facts as readonly LaneFact[]);
    }
  }

  /** Facts that lack what their type promises are a problem like any other. */
  #guarded<T>(row: LogRow, apply: () => T): T | undefined {
    try {
      return apply();
    } catch (error) {
      this.#report(row)("facts_unreadable", "body", "facts that can be applied", String(error));
      return undefined;
    }
  }

  #report(row: LogRow): Report {
    const add = this.#add;
    return (code: ProblemCode, what: string, expected: unknown, found: unknown) =>
      add({ code, runId: row.runId, what: `${what} (entry ${row.seq})`, expected, found });
  }

  #checkOperation(first: LogRow, commit: readonly LogRow[]): void {
    const report = this.#report(first);
    if (first.operationId === null || first.digest === null) {
      report("digest_differs", "first entry of a commit", "an operation id and a digest", first.operationId);
      return;
    }
    if (this.#operations.has(first.operationId)) {
      report("operation_repeated", `operation ${first.operationId}`, "one commit", "another one");
    }
    this.#operations.add(first.operationId);
    if (commit.some((row) => isErased(row.body))) return;
    const digest = sha256Hex(commit.map((row) => row.body).join("\n"));
    if (digest !== first.digest)
      report("digest_differs", `commit ${first.operationId}`, first.digest, digest);
  }

  #decoded(row: LogRow): readonly RunFact[] {
    try {
      const facts = JSON.parse(row.body) as unknown;
      if (Array.isArray(facts)) return facts as readonly RunFact[];
    } catch {
      // Reported below, like a body that is JSON and no list.
    }
    this.#report(row)("facts_unreadable", "body", "a JSON list of facts", row.body.slice(0, 100));
    return [];
  }

  #created(
    row: LogRow,
    facts: readonly RunFact[],
    opened: ReadonlyMap<string, RunFact & { readonly type: "delegation_opened" }>,
  ): void {
    const report = this.#report(row);
    const [fact] = facts;
    if (fact?.type !== "run_created") {
      report("fact_not_allowed", "first facts of a run", "run_created", fact?.type);
      return;
    }
    const { header } = fact;
    if (this.rows.runs.has(row.runId)) {
      report("run_created_twice", row.runId, "once", "again");
      return;
    }
    if (
      header.runId !== row.runId ||
      header.threadId !== row.threadId ||
      header.rootRunId !== row.rootRunId
    ) {
      const { runId, threadId, rootRunId } = row;
      report("child_differs", "keys of the entry", { runId, threadId, rootRunId }, header);
    }
    const parent = header.origin === null ? undefined : this.rows.runs.get(header.origin.parentRunId);
    checkOrigin(header, opened.get(header.runId), parent?.state?.header, report);
    const thread = this.#thread(row);
    const holds = thread.holder === null;
    const state = createdRun(fact);
    const run: ExpectedRun = {
      row: {
        runId: header.runId,
        rootRunId: header.rootRunId,
        parentRunId: header.origin?.parentRunId ?? null,
        threadId: header.threadId,
        delegationId: header.origin?.delegationId ?? null,
        agent: header.agent,
        publication: header.publication,
        depth: header.depth,
        priority: header.priority,
        lane: holds,
        version: holds ? thread.version : 0,
        signalSeq: 0,
        controlSeq: 0,
        createdAt: row.at,
        endedAt: null,
        summary: encodeSummary(state),
      },
      state,
      states: !holds
        ? ["created"]
        : fact.delayMs > 0
          ? ["created", "ready", "running"]
          : ["ready", "running"],
      dueAt: undefined,
      raised: false,
      lastControl: 0,
      conversational: false,
      missingChildren: new Set(),
    };
    if (row.version !== thread.version) report("version_gap", "creation", thread.version, row.version);
    if (holds) thread.holder = run;
    else thread.waiting.push(run);
    this.rows.runs.set(row.runId, run);
    this.liveRuns += 1;
  }

  #thread(row: LogRow): ExpectedThread {
    let thread = this.rows.threads.get(row.threadId);
    if (thread === undefined) {
      thread = { holder: null, waiting: [], version: 0, historyDigest: EMPTY_HISTORY_DIGEST };
      this.rows.threads.set(row.threadId, thread);
    }
    return thread;
  }

  #signal(row: LogRow, fact: SignalFact): void {
    const report = this.#report(row);
    const run = this.rows.runs.get(row.runId);
    if (run === undefined) {
      report("run_unknown", `${fact.type} about ${row.runId}`, "a run that was created", "none");
      return;
    }
    const control = isControl(fact);
    raiseSignal(run, control);
    if (row.signal !== run.row.signalSeq) {
      report("signal_gap", `signal of ${row.runId}`, run.row.signalSeq, row.signal);
      run.row.signalSeq = row.signal;
    }
    if (control) run.lastControl = row.signal;
    if (row.version !== run.row.version)
      report("version_gap", `signal ${row.signal}`, run.row.version, row.version);
    switch (fact.type) {
      case "cancel_requested":
        this.#intentDelivered(row, report);
        break;
      case "ticket_decided":
        this.#decided(run, fact, report);
        break;
      case "child_missing": {
        run.missingChildren.add(fact.delegationId);
        const relation = this.rows.delegations.get(fact.delegationId);
        if (relation === undefined || this.rows.runs.has(relation.childRunId)) {
          report(
            "fact_not_allowed",
            `${fact.delegationId} reported missing`,
            "a child without a record",
            "its child",
          );
        }
        break;
      }
      case "pause_requested":
      case "continue_requested":
      case "late_result":
        break;
      default:
        report("facts_unreadable", "a signal", "a known type", (fact as { readonly type?: unknown }).type);
        return;
    }
    if (run.state !== null) run.state = evolveRun(run.state, fact);
  }

  #intentDelivered(row: LogRow, report: Report): void {
    if (row.operationId?.startsWith("cancel:del_") !== true) return;
    const relation = this.rows.delegations.get(row.operationId.slice("cancel:".length) as DelegationId);
    if (relation === undefined || relation.childRunId !== row.runId || relation.status === "open") {
      report(
        "fact_not_allowed",
        `intent ${row.operationId}`,
        "a relationship that was asked to cancel",
        relation?.status,
      );
    }
    if (relation !== undefined) relation.intentDelivered = true;
  }

  #decided(run: ExpectedRun, fact: SignalFact & { readonly type: "ticket_decided" }, report: Report): void {
    const ticket = this.rows.tickets.get(fact.ticketId);
    if (ticket?.status !== "open" || ticket.runId !== run.row.runId) {
      report(
        "fact_not_allowed",
        `${fact.ticketId} decided`,
        "an open ticket of this run (L33)",
        ticket?.status,
      );
      return;
    }
    const { schema } = JSON.parse(ticket.body) as { readonly schema: Parameters<typeof schemaProblems>[0] };
    const wrong = schemaProblems(schema, fact.answer);
    if (wrong.length > 0)
      report("fact_not_allowed", `${fact.ticketId} decided`, "an answer that fits", wrong);
    const { ticketId, decisionId, answer, by } = fact;
    ticket.status = "decided";
    ticket.decisionId = decisionId;
    ticket.decisionDigest = decisionDigest({ ticketId, decisionId, answer, by, expect: {} });
  }

  /** Applies the holder's facts; answers what they deliver to the parent. */
  #lane(row: LogRow, facts: readonly LaneFact[]): readonly Delivery[] {
    const report = this.#report(row);
    const run = this.rows.runs.get(row.runId);
    if (run === undefined) {
      report("run_unknown", `facts of ${row.runId}`, "a run that was created", "none");
      return [];
    }
    const thread = this.#thread(row);
    if (run.state === null) {
      report(
        "fact_after_end",
        `facts of ${row.runId}`,
        "none after its end (L3)",
        facts.map((fact) => fact.type),
      );
      return [];
    }
    if (thread.holder !== run) {
      report("lane_not_held", `facts of ${row.runId}`, thread.holder?.row.runId ?? "nobody", row.runId);
    }
    if (row.version !== thread.version + 1) {
      report("version_gap", `thread ${row.threadId}`, thread.version + 1, row.version);
    }
    thread.version = row.version;
    run.row.version = row.version;
    let { state } = run;
    for (const fact of facts) {
      if (!checkLaneFact(run, state, fact, facts, this.rows, report)) continue;
      state = this.#evolve(run, thread, state, fact, row, report);
    }
    run.state = state;
    run.row.summary = encodeSummary(state);
    return envelopes(state, facts);
  }

  #evolve(
    run: ExpectedRun,
    thread: ExpectedThread,
    before: RunState,
    fact: LaneFact,
    row: LogRow,
    report: Report,
  ): RunState {
    const state = evolveRun(before, fact);
    switch (fact.type) {
      case "history_appended":
        thread.historyDigest =
          thread.historyDigest === null
            ? fact.digest
            : fact.messages.reduce(chainDigest, thread.historyDigest);
        if (fact.digest !== thread.historyDigest) {
          report("history_differs", "history_appended", thread.historyDigest, fact.digest);
        }
        break;
      case "step_published": {
        run.conversational = fact.message !== null;
        const digest =
          fact.message === null
            ? null
            : thread.historyDigest === null
              ? fact.historyDigest
              : chainDigest(thread.historyDigest, fact.message);
        if (fact.historyDigest !== digest)
          report("history_differs", `step ${fact.step}`, digest, fact.historyDigest);
        thread.historyDigest = digest ?? thread.historyDigest;
        break;
      }
      case "batch_finalized":
        if (run.conversational && state.batch !== null && thread.historyDigest !== null) {
          thread.historyDigest = chainDigest(thread.historyDigest, toolMessage(state.batch));
        }
        break;
      default:
        projectFact(this.rows, run, fact, row);
    }
    return state;
  }

  /** How the commit leaves its Run: held, parked, or ended with the lane passed on. */
  #afterLane(row: LogRow, facts: readonly LaneFact[]): void {
    const run = this.rows.runs.get(row.runId);
    const state = run?.state;
    if (run === undefined || state === null || state === undefined) return;
    const last = facts.at(-1);
    const raised = run.raised;
    run.raised = false;
    run.dueAt = undefined;
    if (last?.type === "run_ended") {
      run.states = ["ended"];
      run.dueAt = null;
      run.state = null;
      run.row.lane = false;
      run.row.endedAt = row.at;
      this.liveRuns -= 1;
      const thread = this.#thread(row);
      if (thread.holder !== run) return;
      const next = thread.waiting.shift() ?? null;
      thread.holder = next;
      if (next === null) return;
      next.row.lane = true;
      next.row.version = thread.version;
      next.states = ["created", "ready", "running"];
    } else if (last?.type === "parked") {
      const parked = waitState(last.wait);
      run.states = raised || last.dueInMs !== null ? [parked, "ready", "running"] : [parked];
      run.dueAt = raised ? undefined : last.dueInMs === null ? null : row.at + last.dueInMs;
    } else run.states = ["ready", "running"];
  }
}
