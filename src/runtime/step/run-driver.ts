import { schemaProblems } from "../../rules/json-schema.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { DelegationId } from "../../domain/id.ts";
import type { ResultEnvelope } from "../../domain/child-results/envelope.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import { decideEnd, type UnreadResult } from "../../domain/run/run.ts";
import { chainDigest } from "../../domain/thread/history.ts";
import { deriveTicketId } from "../../domain/ticket/ticket.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";
import { encodeLaneCommit } from "../commit/encode-commit.ts";
import { sleep } from "../commit/committer.ts";
import { planCalls } from "../delegation/plan-calls.ts";
import type { LoadedAgent } from "../ports/agent.ts";
import type { CarrierSession, Move, MoveContext } from "../ports/carrier.ts";
import type { ClaimedRun, InboxRow } from "../ports/store.ts";
import { LoadedRun, decodeFacts } from "../run/loaded-run.ts";
import { type BatchScope, parkedOn, settleInbox, settleOwnCalls, startCalls } from "./batch-progress.ts";
import type { DriverHost } from "./driver-host.ts";
import { readRun } from "./read-run.ts";
import { retryPauseMs } from "./runtime-settings.ts";
import { Staging, accepted } from "./staging.ts";
import { ToolExecutions } from "./tool-executions.ts";

/*
 * One claim of one Run, from load to park or end.
 *
 * V1 Nothing starts before the commit that says so stands: launches follow commits (L8).
 * V2 Facts are applied as they are staged; when a commit is refused, memory is thrown away and read again.
 * V3 A claim that is lost ends the driver without another write (L4); what it was doing is recovered by the next holder.
 * V4 No store call is open while a model, a tool or a peer is at work (L6).
 */

/** The claim is gone: another holder has it, or the store says so. */
export class LostClaim extends Error {
  override readonly name = "LostClaim";
}

/** `left`: the Run is parked, ended or given back. `on`: look again. */
type Progress = "left" | "on";

export class RunDriver {
  readonly claim: ClaimedRun;
  /** Aborts with a LostClaim when the lease goes, or with any reason when the worker stops by force. */
  readonly abort: AbortController = new AbortController();
  readonly #host: DriverHost;
  readonly #executions: ToolExecutions;
  readonly #handed: readonly InboxRow[];
  readonly #inbox = new Map<DelegationId, InboxRow>();
  #run!: LoadedRun;
  #staging!: Staging;
  #agent!: LoadedAgent;
  #session: CarrierSession | null = null;
  #signalSeq = 0;
  #controlSeq = 0;
  #stalePending = true;
  /** Stops the carrier: the Run is canceled, or the claim is lost. */
  readonly #stop = new AbortController();
  #poke: () => void = () => undefined;
  #poked = false;

  constructor(host: DriverHost, claim: ClaimedRun, handed: readonly InboxRow[] = []) {
    this.#host = host;
    this.#handed = handed;
    this.claim = claim;
    this.#executions = new ToolExecutions(() => this.poke(false));
    const lost = (): void => {
      this.#stop.abort(this.abort.signal.reason);
      this.poke(false);
    };
    this.abort.signal.addEventListener("abort", lost, { once: true });
  }

  /** Something happened to the Run from outside; look at it. */
  wake(): void {
    this.poke(true);
  }

  async drive(): Promise<void> {
    try {
      await this.#load();
      while ((await this.#progress()) === "on") this.#stopIfAborted();
    } catch (error) {
      await this.#surrender(error);
    } finally {
      if (this.#executions.busy) this.#executions.abort(new LostClaim("the run has left this worker"));
    }
  }

  private poke(pending: boolean): void {
    if (pending) this.#stalePending = true;
    this.#poked = true;
    this.#poke();
  }

  async #load(): Promise<void> {
    const { runId, version, signalSeq, controlSeq } = this.claim;
    const warm = this.#host.takeWarm(runId);
    this.#signalSeq = signalSeq;
    this.#controlSeq = controlSeq;
    if (warm !== undefined && warm.run.version === version) {
      this.#use(warm.run);
      this.#session = warm.session;
      // Nothing else has come than what was handed over: there is nothing to read.
      this.#stalePending = signalSeq !== warm.signalSeq + this.#handed.length;
      if (!this.#stalePending) for (const row of this.#handed) this.#inbox.set(row.delegationId, row);
      return;
    }
    warm?.session?.dispose();
    await this.#reload();
  }

  /** Reads the Run from its log; whatever was staged is forgotten. */
  async #reload(): Promise<void> {
    const run = await readRun(this.#host.store, this.#host.tenant, this.claim.runId);
    if (run === undefined) throw new LostClaim(`${this.claim.runId} is gone from the store`);
    this.#session?.dispose();
    this.#session = null;
    this.#use(run);
    this.#inbox.clear();
    this.#stalePending = true;
  }

  #use(run: LoadedRun): void {
    this.#run = run;
    this.#staging = new Staging(run);
    const agent = this.#host.catalog.loaded(run.state.header.publication);
    if (agent === undefined)
      throw new LostClaim(`this worker does not carry ${run.state.header.publication}`);
    this.#agent = agent;
  }

  #stopIfAborted(): void {
    if (this.abort.signal.aborted) throw this.abort.signal.reason;
  }

  async #progress(): Promise<Progress> {
    if (this.#stalePending) await this.#readPending();
    const { state } = this.#run;
    if (state.status.kind === "ended") throw new LostClaim(`${state.header.runId} has ended`);
    if (
      this.claim.fruitlessClaims > this.#host.settings.maxFruitlessClaims &&
      this.#run.version === this.claim.version
    ) {
      return this.#end({
        kind: "indeterminate",
        reason: `claimed ${this.claim.fruitlessClaims} times without a commit`,
      });
    }
    if (state.cancel !== null) return this.#endCanceled(state.cancel.reason);
    if (!this.#executions.busy && state.pause !== null && this.#executions.finished.size === 0)
      return this.#pause();
    if (this.#host.draining && !this.#executions.busy && this.#executions.finished.size === 0)
      return this.#handBack();
    if (state.batch?.status === "open") return this.#advanceBatch();
    const retryInMs = this.#run.retryDueAt === null ? 0 : this.#run.retryDueAt - this.#host.store.now();
    if (!state.attemptOpen && retryInMs > 0) {
      this.#staging.add({
        type: "parked",
        wait: { on: "retry", attempt: state.attempt + 1 },
        dueInMs: retryInMs,
      });
      return this.#commit({});
    }
    return this.#step();
  }

  async #readPending(): Promise<void> {
    this.#stalePending = false;
    const pending = await this.#host.store.readPending(
      this.#host.tenant,
      this.claim.runId,
      this.#run.appliedSignal,
    );
    this.#signalSeq = pending.signalSeq;
    this.#controlSeq = pending.controlSeq;
    for (const row of pending.signals) {
      for (const fact of decodeFacts(row.body)) this.#run.apply(fact, row.at);
      this.#run.appliedSignal = Math.max(this.#run.appliedSignal, row.signal);
    }
    const { appliedSignal, state } = this.#run;
    if (appliedSignal > state.observedSignal && state.status.kind !== "ended") {
      this.#staging.add({ type: "control_observed", upTo: appliedSignal });
    }
    for (const row of pending.inbox) this.#inbox.set(row.delegationId, row);
  }

  #scope(): BatchScope {
    return {
      tenant: this.#host.tenant,
      agent: this.#agent,
      catalog: this.#host.catalog,
      executions: this.#executions,
      staging: this.#staging,
      inbox: this.#inbox,
      now: this.#host.store.now(),
    };
  }

  async #advanceBatch(): Promise<Progress> {
    const scope = this.#scope();
    const staging = this.#staging;
    settleOwnCalls(scope);
    const { unexpectedAwait } = await settleInbox(scope);
    if (unexpectedAwait && this.#agent.definition.onUnexpectedAwait === "indeterminate") {
      return this.#end({ kind: "indeterminate", reason: "a child of a parallel batch awaits" });
    }
    const launches = await startCalls(scope);
    const batch = this.#run.state.batch;
    if (batch === null || batch.status !== "open") return "on";
    if (batch.calls.every((call) => call.phase === "completed" || call.phase === "indeterminate")) {
      staging.batch({ type: "finalize" });
      // Envelopes and decisions are durable already, so a function agent may go on and share the commit (DESIGN 4).
      if (!staging.durable || this.#agent.definition.kind === "model") return this.#commit({});
      return "on";
    }
    if (launches.length > 0 || this.#executions.busy) {
      if (!staging.empty && (await this.#commit({ authorizes: launches.length > 0 })) === "left")
        return "left";
      if (this.#staging !== staging) return "on"; // refused: what was to be launched is decided again
      for (const launch of launches) {
        if (!this.#host.leaseIsFresh())
          throw new LostClaim("the lease was not renewed in time to begin an effect");
        this.#executions.launch(launch, {
          tenant: this.#host.tenant,
          header: this.#run.state.header,
          emit: (delta) => this.#emit(delta),
        });
      }
      if (this.#executions.finished.size === 0 && !this.#stalePending) await this.#event();
      return "on";
    }
    const { wait, dueInMs } = parkedOn(scope);
    staging.add({ type: "parked", wait, dueInMs });
    return this.#commit({ authorizes: staging.children.length > 0 });
  }

  async #step(): Promise<Progress> {
    const staging = this.#staging;
    const { definition } = this.#agent;
    if (this.#inbox.size > 0) await settleInbox(this.#scope());
    const context = this.#context();
    this.#session ??= definition.open();
    if (!this.#run.state.attemptOpen) {
      const first = this.#run.state.attempt === 0;
      staging.add({ type: "attempt_started", attempt: this.#run.state.attempt + 1 });
      const messages = first ? this.#session.prompt(context) : [];
      if (messages.length > 0) {
        let digest = this.#run.historyDigest;
        for (const message of messages) digest = chainDigest(digest, message);
        staging.add({ type: "history_appended", messages, digest });
      }
    }
    if (this.#run.state.nextStep > definition.maxSteps) {
      return this.#end({
        kind: "stopped",
        reason: "limit",
        detail: `${definition.maxSteps} steps (maxSteps) are used up`,
      });
    }
    const move = await this.#nextMove(this.#session, context);
    if (move === "on" || move === "left") return move;
    return this.#make(move);
  }

  /** Asks the carrier, and keeps looking at what comes from outside meanwhile. */
  async #nextMove(session: CarrierSession, context: MoveContext): Promise<Move | Progress> {
    const staging = this.#staging;
    let settled: { readonly move: Move } | { readonly error: unknown } | undefined;
    const asked = session.next(context, this.#stop.signal).then(
      (move) => void (settled = { move }),
      (error: unknown) => void (settled = { error }),
    );
    const over = asked.then(() => this.poke(false));
    if (!staging.empty && context.history.length === 0 && this.#run.state.nextStep > 1) {
      await quiet(asked);
      // The carrier takes longer than a moment: publish what it was told before waiting for it.
      if (settled === undefined && (await this.#commit({})) !== "on") return "left";
      if (this.#staging !== staging) return "on";
    }
    while (settled === undefined) {
      await this.#event();
      this.#stopIfAborted();
      if (this.#stalePending) await this.#readPending();
      const { cancel } = this.#run.state;
      if (cancel !== null && settled === undefined) {
        this.#stop.abort(
          new ErrandError(
            "RUN_CANCELED",
            `${this.claim.runId} is canceled: ${cancel.reason}.`,
            "Stop working on it.",
          ),
        );
        await Promise.race([over, this.#grace()]);
        return "on";
      }
    }
    if ("error" in settled) throw settled.error;
    return settled.move;
  }

  async #make(move: Move): Promise<Progress> {
    const staging = this.#staging;
    const { definition } = this.#agent;
    const { ticket } = this.#run.state;
    const answer = ticket === null ? undefined : this.#run.decided.get(ticket.ticketId);
    // A failed move has not used the answer: the next attempt gets it again.
    if (ticket !== null && answer !== undefined && move.kind !== "fail") {
      staging.add({ type: "ticket_consumed", ticketId: ticket.ticketId, answer });
    }
    switch (move.kind) {
      case "calls": {
        const { calls, mode } = await planCalls(
          this.#host.tenant,
          this.#agent,
          this.#host.catalog,
          move.calls,
        );
        const { message } = move;
        staging.add({
          type: "step_published",
          step: this.#run.state.nextStep,
          mode,
          calls,
          message,
          historyDigest: message === null ? null : chainDigest(this.#run.historyDigest, message),
          usage: move.usage,
        });
        staging.durable = staging.durable && definition.kind !== "model";
        return "on";
      }
      case "complete": {
        const problems = schemaProblems(this.#run.state.header.outputSchema, move.output);
        if (problems.length > 0) {
          const what = problems.map((one) => `${one.pointer || "/"}: ${one.message}`).join("; ");
          const error = {
            code: "output_invalid",
            message: `The result does not fit the output schema: ${what}.`,
          };
          return this.#fail(error, definition.kind === "model", null, move.usage);
        }
        if (move.message !== null) {
          const digest = chainDigest(this.#run.historyDigest, move.message);
          staging.add({ type: "history_appended", messages: [move.message], digest });
        }
        return this.#end({ kind: "completed", output: move.output }, move.usage);
      }
      case "fail":
        return this.#fail(move.error, move.retryable, move.retryAfterMs, move.usage);
      case "end":
        return this.#end(move.end, move.usage);
      case "wait":
        staging.add({ type: "carrier_noted", note: move.note });
        staging.add({ type: "parked", wait: { on: "peer", detail: move.detail }, dueInMs: move.pollInMs });
        return this.#commit({});
      case "ask": {
        const { header, ticketsOpened } = this.#run.state;
        const ticketId = deriveTicketId(header.runId, { step: 0, index: 0 }, ticketsOpened);
        staging.add(
          { type: "carrier_noted", note: move.note },
          {
            type: "ticket_opened",
            ticketId,
            kind: move.ticketKind,
            call: null,
            publication: header.publication,
            prompt: move.prompt,
            schema: move.schema,
            callDigest: null,
            deadlineInMs: null,
          },
          { type: "parked", wait: { on: "ticket", ticketId, ticketKind: move.ticketKind }, dueInMs: null },
        );
        return this.#commit({});
      }
      case "continue_as":
        staging.add({ type: "continued_as", input: move.input });
        this.#session?.dispose();
        this.#session = null;
        return this.#commit({});
      default:
        return move satisfies never;
    }
  }

  async #fail(
    error: CallError,
    retryable: boolean,
    retryAfterMs: number | null,
    usage: Usage | null,
  ): Promise<Progress> {
    const { attempt, failures } = this.#run.state;
    if (!retryable || failures + 1 >= this.#agent.definition.maxAttempts) {
      return this.#end({ kind: "failed", error }, usage);
    }
    const retryInMs = retryPauseMs(this.#host.settings, failures + 1, retryAfterMs);
    this.#staging.add({ type: "attempt_failed", attempt, error, retryInMs, usage });
    this.#staging.add({ type: "parked", wait: { on: "retry", attempt: attempt + 1 }, dueInMs: retryInMs });
    this.#session?.dispose();
    this.#session = null;
    return this.#commit({});
  }

  async #end(end: RunEnd, usage: Usage | null = null): Promise<Progress> {
    const { state } = this.#run;
    const unread: UnreadResult[] = [];
    for (const row of this.#inbox.values()) {
      if (
        row.kind !== "result" ||
        !state.delegations.open.some((one) => one.delegationId === row.delegationId)
      )
        continue;
      const envelope = JSON.parse(row.body) as ResultEnvelope;
      const { usage: spent, treeRunsUsed } = envelope;
      unread.push({ delegationId: row.delegationId, digest: row.digest, usage: spent, treeRunsUsed });
    }
    this.#staging.add(...accepted(state.header.runId, decideEnd(state, end, usage, unread)));
    return this.#commit({ authorizes: end.kind === "completed" });
  }

  async #endCanceled(reason: string): Promise<Progress> {
    if (this.#executions.busy) {
      this.#executions.abort(
        new ErrandError("RUN_CANCELED", `${this.claim.runId} is canceled: ${reason}.`, "Stop working on it."),
      );
      const grace = this.#grace();
      let over = false;
      void grace.then(() => (over = true));
      while (this.#executions.busy && !over) await Promise.race([this.#event(), grace]);
      this.#stopIfAborted();
      this.#executions.forget();
    }
    settleOwnCalls(this.#scope());
    return this.#end({ kind: "canceled", reason, confirmed: await this.#cancelPeer(reason) });
  }

  /** Tells the peer that carries the Run, if one does. True once nothing of the work is left running. */
  async #cancelPeer(reason: string): Promise<boolean> {
    const { definition } = this.#agent;
    if (definition.kind !== "remote") return true;
    const session = this.#session ?? definition.open();
    try {
      const asked = session.cancel?.(this.#context(), reason) ?? Promise.resolve("confirmed" as const);
      return (await Promise.race([asked, this.#grace()])) === "confirmed";
    } catch (error) {
      this.#host.telemetry.emit({
        type: "unexpected",
        tenant: this.#host.tenant,
        runId: this.claim.runId,
        error,
      });
      return false;
    }
  }

  async #pause(): Promise<Progress> {
    settleOwnCalls(this.#scope());
    this.#staging.add({ type: "parked", wait: { on: "continue" }, dueInMs: null });
    return this.#commit({});
  }

  /** Gives the claim back at a safe point; the Run is ready for any worker at once. */
  async #handBack(): Promise<Progress> {
    if (!this.#staging.empty && !this.#staging.durable && (await this.#commit({})) === "left") return "left";
    const { runId, epoch } = this.claim;
    await this.#host.store.release(this.#host.tenant, this.#host.incarnation, [{ runId, epoch }]);
    this.#session?.dispose();
    return "left";
  }

  /** Commits what is staged. Afterwards the staging is a new one; after a refusal by a control the Run was read again. */
  async #commit(options: { readonly authorizes?: boolean }): Promise<Progress> {
    const host = this.#host;
    const run = this.#run;
    const { facts, children, waitsRead } = this.#staging.take();
    const last = facts.at(-1);
    const leaves = last?.type === "parked" || last?.type === "run_ended";
    const commit = encodeLaneCommit({
      tenant: host.tenant,
      run,
      facts,
      incarnation: host.incarnation,
      epoch: this.claim.epoch,
      signalSeqSeen: this.#signalSeq,
      controlSeqSeen: options.authorizes === true ? this.#controlSeq : null,
      children,
      claimChildren: host.draining ? 0 : Math.min(children.length, host.freeSlots() + (leaves ? 1 : 0)),
      claimParent: last?.type === "run_ended" && !host.draining,
      carries: host.carries,
      waitsRead,
    });
    const outcome = await host.committer.commit(commit, this.abort.signal);
    switch (outcome.kind) {
      case "committed":
      case "duplicate":
        break;
      case "stale":
        if (outcome.reason !== "control")
          throw new LostClaim(`the store refused the commit: ${outcome.reason}`);
        await this.#reload();
        return "on";
      case "conflict":
        throw new LostClaim(`another commit stands under ${commit.operationId}`);
      case "refused":
        throw new ErrandError(
          "STALE_CLAIM",
          `${run.state.header.runId} could not commit: ${outcome.reason}.`,
          "It is tried again.",
        );
      default:
        outcome satisfies never;
    }
    const { receipt } = outcome;
    run.version = receipt.version ?? run.version;
    run.summary = commit.lane?.summary ?? run.summary;
    run.timed(facts, receipt.at);
    for (const fact of facts) {
      if (fact.type === "call_completed" || fact.type === "call_indeterminate")
        this.#executions.finished.delete(fact.index);
    }
    if (receipt.signalSeq !== this.#signalSeq || receipt.controlSeq !== this.#controlSeq)
      this.#stalePending = true;
    for (const child of children) {
      const created = LoadedRun.created({ type: "run_created", header: child, delayMs: 0 });
      if (receipt.claimed.some((claim) => claim.runId === child.runId)) {
        host.keepWarm(child.runId, { run: created, session: null, signalSeq: 0 });
      }
    }
    if (receipt.claimed.length > 0) {
      const status = "unread" as const;
      host.adopt(
        receipt.claimed,
        commit.deliver.map((delivery) => ({ tenant: host.tenant, ...delivery, status })),
      );
    }
    if (facts.some((fact) => fact.type === "delegation_cancel_requested")) host.intentsRecorded();
    if (last?.type === "run_ended") {
      this.#session?.dispose();
      return "left";
    }
    if (!receipt.parked) return "on";
    // With an envelope left unread, the next claim has to look at the inbox again.
    const signalSeq = this.#inbox.size === 0 ? this.#signalSeq : -1;
    host.keepWarm(this.claim.runId, { run, session: this.#session, signalSeq });
    return "left";
  }

  /** An error that no rule foresaw. A lost claim is simply left; anything else is a failed attempt, so that it ends. */
  async #surrender(error: unknown): Promise<void> {
    const { tenant, telemetry } = this.#host;
    const { runId } = this.claim;
    this.#session?.dispose();
    if (error instanceof LostClaim || this.abort.signal.aborted) {
      const reason = error instanceof Error ? error.message : String(error);
      telemetry.emit({ type: "run_abandoned", tenant, runId, reason });
      return;
    }
    telemetry.emit({ type: "unexpected", tenant, runId, error });
    try {
      await this.#reload();
      await this.#readPending();
      const message = error instanceof Error ? error.message : String(error);
      const settled = await this.#fail({ code: "runtime_error", message }, true, null, null);
      if (settled === "left") return;
    } catch (second) {
      telemetry.emit({
        type: "run_abandoned",
        tenant,
        runId,
        reason: second instanceof Error ? second.message : String(second),
      });
    }
    await this.#host.store
      .release(tenant, this.#host.incarnation, [{ runId, epoch: this.claim.epoch }])
      .catch((third: unknown) =>
        telemetry.emit({ type: "store_trouble", tenant, during: "release", error: third }),
      );
  }

  #context(): MoveContext {
    const { state, history, journal } = this.#run;
    const { ticket } = state;
    return {
      header: state.header,
      attempt: state.attempt,
      input: state.input,
      history,
      journal,
      note: state.note,
      answer: ticket === null ? undefined : this.#run.decided.get(ticket.ticketId),
      stepsTaken: state.nextStep - 1,
      now: this.#host.store.now(),
      emit: (delta) => this.#emit(delta),
      warn: (message) =>
        this.#host.telemetry.emit({
          type: "run_warning",
          tenant: this.#host.tenant,
          runId: state.header.runId,
          message,
        }),
    };
  }

  #emit(delta: Parameters<MoveContext["emit"]>[0]): void {
    const { runId, rootRunId, origin } = this.#run.state.header;
    this.#host.bus.publish({
      tenant: this.#host.tenant,
      rootRunId,
      runId,
      parentRunId: origin?.parentRunId ?? null,
      delegationId: origin?.delegationId ?? null,
      parentCall: origin === null ? null : `${origin.call.step}.${origin.call.index}`,
      delta,
    });
  }

  /** Resolves at the next thing that happens: a tool or the carrier settles, a signal comes, the claim is lost. */
  async #event(): Promise<void> {
    if (!this.#poked && !this.abort.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#poke = resolve;
      });
    }
    this.#poked = false;
    this.#poke = () => undefined;
  }

  #grace(): Promise<void> {
    return sleep(this.#host.clock, this.#host.settings.cancelGraceMs, this.abort.signal).catch(
      () => undefined,
    );
  }
}

/** Lets a carrier that has its answer at hand give it: two turns of the event loop. */
async function quiet(asked: Promise<void>): Promise<void> {
  let over = false;
  void asked.then(() => (over = true));
  for (let turn = 0; turn < 2 && !over; turn++)
    await new Promise<void>((resolve) => void setImmediate(resolve));
}
