import { ErrandError } from "../../domain/errand-error.ts";
import type { ResultEnvelope } from "../../domain/child-results/envelope.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { DelegationId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import { decideEnd, type UnreadResult } from "../../domain/run/run.ts";
import type { Wait } from "../../domain/run/wait.ts";
import { chainDigest } from "../../domain/thread/history.ts";
import { callEnded } from "../../domain/tool-batch/tool-batch.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";
import { passes, sleep } from "../commit/committer.ts";
import type { LoadedAgent } from "../ports/agent.ts";
import type { CarrierSession, Move, MoveContext } from "../ports/carrier.ts";
import type { ClaimedRun, InboxRow } from "../ports/store.ts";
import { type LoadedRun, decodeFacts } from "../run/loaded-run.ts";
import { readRun } from "../run/read-run.ts";
import { applyMove } from "./apply-move.ts";
import {
  type BatchScope,
  parkedOn,
  recordOutcomes,
  settleInbox,
  settleOwnCalls,
  startCalls,
} from "./batch-progress.ts";
import type { DriverHost } from "./driver-host.ts";
import { Interrupts } from "./interrupts.ts";
import { LaneWriter } from "./lane-writer.ts";
import { LostClaim } from "./lost-claim.ts";
import { emitDelta, moveContext } from "./move-context.ts";
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

/** `left`: the Run is parked, ended or given back. `on`: look again. */
type Progress = "left" | "on";

export class RunDriver {
  readonly claim: ClaimedRun;
  readonly #host: DriverHost;
  readonly #handed: readonly InboxRow[];
  readonly #writer: LaneWriter;
  readonly #executions: ToolExecutions;
  readonly #inbox = new Map<DelegationId, InboxRow>();
  readonly #interrupts = new Interrupts();
  #run!: LoadedRun;
  #staging!: Staging;
  #agent!: LoadedAgent;
  #session: CarrierSession | null = null;
  /** A model's answer that no commit holds yet: a commit that a control forbids must not make us pay for it again. */
  #paidMove: { readonly step: number; readonly move: Move } | null = null;
  /** Something may have come that was not read yet. */
  #stalePending = false;

  /**
   * @param handed envelopes that came with the claim, in the same commit
   * @param driver its number among the drivers of its worker
   */
  constructor(host: DriverHost, claim: ClaimedRun, handed: readonly InboxRow[], driver: number) {
    this.#host = host;
    this.#handed = handed;
    this.claim = claim;
    this.#writer = new LaneWriter(host, claim, driver, () => this.#interrupts.whenLost());
    this.#executions = new ToolExecutions(() => this.#interrupts.wakeUp());
  }

  /** Something happened to the Run from outside; look at it. */
  wake(): void {
    this.#stalePending = true;
    this.#interrupts.wakeUp();
  }

  /** The claim is gone, or the worker stops by force: everything that runs under it is told to stop. */
  lose(reason: string): void {
    this.#interrupts.lose(reason);
  }

  async drive(): Promise<void> {
    try {
      await this.#load();
      while ((await this.#progress()) === "on") this.#interrupts.throwIfLost();
    } catch (error) {
      await this.#surrender(error);
    } finally {
      if (this.#executions.busy) this.#executions.abort(new LostClaim("the run has left this worker"));
    }
  }

  async #load(): Promise<void> {
    const { runId, version, signalSeq } = this.claim;
    const warm = this.#host.takeWarm(runId);
    if (warm === undefined || warm.run.version !== version) {
      warm?.session?.dispose();
      await this.#reload();
      return;
    }
    this.#use(warm.run);
    this.#session = warm.session;
    // If nothing else has come than what was handed over, there is nothing to read.
    this.#stalePending ||= signalSeq !== warm.signalSeq + this.#handed.length;
    if (!this.#stalePending) for (const row of this.#handed) this.#inbox.set(row.delegationId, row);
  }

  /** Reads the Run from its log; whatever was staged is forgotten. */
  async #reload(): Promise<void> {
    const { store, tenant } = this.#host;
    const run = await this.#insist("load", () => readRun(store, tenant, this.claim.runId));
    if (run === undefined) throw new LostClaim(`${this.claim.runId} is gone from the store`);
    this.#session?.dispose();
    this.#session = null;
    this.#use(run);
    this.#inbox.clear();
    this.#stalePending = true;
  }

  #use(run: LoadedRun): void {
    const { publication } = run.state.header;
    const agent = this.#host.catalog.loaded(publication);
    if (agent === undefined) throw new LostClaim(`this worker does not carry ${publication}`);
    this.#run = run;
    this.#staging = new Staging(run);
    this.#agent = agent;
  }

  async #progress(): Promise<Progress> {
    if (this.#stalePending) await this.#readPending();
    const { state, version, attemptDueAt } = this.#run;
    const { settings, store } = this.#host;
    if (state.status.kind === "ended") throw new LostClaim(`${state.header.runId} has ended`);
    const { fruitlessClaims } = this.claim;
    if (fruitlessClaims > settings.maxFruitlessClaims && version === this.claim.version) {
      return this.#end({
        kind: "indeterminate",
        reason: `claimed ${fruitlessClaims} times without a commit`,
      });
    }
    if (state.cancel !== null) return this.#endCanceled(state.cancel.reason);
    if (!this.#executions.busy && this.#executions.finished.size === 0) {
      if (state.pause !== null) return this.#park({ on: "continue" }, null);
      if (this.#host.draining) return this.#handBack();
    }
    if (state.batch?.status === "open") return this.#advanceBatch();
    const dueInMs = attemptDueAt === null ? 0 : attemptDueAt - store.now();
    if (dueInMs > 0) {
      const attempt = state.attempt + 1;
      return this.#park(state.failures === 0 ? { on: "timer" } : { on: "retry", attempt }, dueInMs);
    }
    const { ticket } = state;
    if (ticket !== null && !this.#run.decided.has(ticket.ticketId)) {
      // The carrier has asked and is not answered: a question is put once, whatever else wakes the Run.
      return this.#park({ on: "ticket", ticketId: ticket.ticketId, ticketKind: ticket.kind }, null);
    }
    return this.#step();
  }

  async #readPending(): Promise<void> {
    this.#stalePending = false;
    const { store, tenant } = this.#host;
    const { runId } = this.claim;
    const pending = await this.#insist("read", () =>
      store.readPending(tenant, runId, this.#run.appliedSignal),
    );
    this.#writer.signalSeq = pending.signalSeq;
    this.#writer.controlSeq = pending.controlSeq;
    for (const row of pending.signals) {
      for (const fact of decodeFacts(row.body)) this.#run.apply(fact, row.at);
      this.#run.appliedSignal = Math.max(this.#run.appliedSignal, row.signal);
    }
    const { appliedSignal, state } = this.#run;
    if (appliedSignal > state.observedSignal && state.status.kind !== "ended") {
      this.#staging.add({ type: "control_observed", upTo: appliedSignal });
    }
    for (const row of pending.inbox) {
      if (!this.#staging.reads(row.delegationId, row.digest)) this.#inbox.set(row.delegationId, row);
    }
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
    if (batch.calls.every(callEnded)) {
      staging.batch({ type: "finalize" });
      // Envelopes and decisions are durable already, so a function agent may go on and share the commit (DESIGN 4).
      return staging.durable && this.#agent.definition.kind !== "model" ? "on" : this.#commit(false);
    }
    // A tool may have ended while the inbox was read: its outcome is settled in the next round, never parked upon.
    const ended = batch.calls.some((call, index) => !callEnded(call) && this.#executions.finished.has(index));
    if (launches.length > 0 || this.#executions.busy || ended) {
      if (!staging.empty && (await this.#commit(launches.length > 0)) === "left") return "left";
      if (this.#staging !== staging) return "on"; // refused: what was to be launched is decided again
      for (const launch of launches) {
        this.#interrupts.throwIfLost();
        if (!this.#host.leaseIsFresh()) {
          throw new LostClaim("the lease was not renewed in time to begin an effect");
        }
        const { tenant } = this.#host;
        const { header } = this.#run.state;
        this.#executions.launch(launch, {
          tenant,
          header,
          emit: (delta) => emitDelta(this.#host, header, delta),
        });
      }
      if (this.#executions.finished.size === 0 && !this.#stalePending) await this.#interrupts.event();
      return "on";
    }
    const { wait, dueInMs } = parkedOn(scope);
    return this.#park(wait, dueInMs);
  }

  async #step(): Promise<Progress> {
    const staging = this.#staging;
    const { definition } = this.#agent;
    if (this.#inbox.size > 0) await settleInbox(this.#scope());
    this.#session ??= definition.open();
    const { attempt, attemptOpen, historyDigest, nextStep, stepsBefore } = this.#run.state;
    if (!attemptOpen) staging.add({ type: "attempt_started", attempt: attempt + 1 });
    const context = moveContext(this.#host, this.#run);
    if (!attemptOpen) {
      const messages = historyDigest === null ? this.#session.prompt(context) : [];
      if (messages.length > 0) {
        const digest = messages.reduce(chainDigest, this.#run.historyDigest);
        staging.add({ type: "history_appended", messages, digest });
      }
    }
    if (nextStep - stepsBefore > definition.maxSteps) {
      const detail = `${definition.maxSteps} steps (maxSteps) are used up`;
      return this.#end({ kind: "stopped", reason: "limit", detail });
    }
    const kept = this.#paidMove?.step === nextStep ? this.#paidMove.move : null;
    const move = kept ?? (await this.#nextMove(this.#session, context));
    if (move === "on" || move === "left") return move;
    if (definition.kind === "model" && move.kind !== "fail") this.#paidMove = { step: nextStep, move };
    // A cancel was read while the carrier gave its move: nothing new follows it, and no completion (L23).
    if (this.#run.state.cancel !== null) return "on";
    const after = await applyMove(this.#scope(), move);
    switch (after.next) {
      case "advance":
        return "on";
      case "commit":
        if (after.newSession) this.#dropSession();
        return this.#commit(false);
      case "end":
        return this.#end(after.end, after.usage);
      case "fail":
        return this.#fail(after.error, after.retryable, after.retryAfterMs, after.usage);
      default:
        return after satisfies never;
    }
  }

  /** Asks the carrier, and keeps looking at what comes from outside meanwhile. */
  async #nextMove(session: CarrierSession, context: MoveContext): Promise<Move | Progress> {
    const staging = this.#staging;
    let settled: { readonly move: Move } | { readonly error: unknown } | undefined;
    const asked = session.next(context, this.#interrupts.stop.signal).then(
      (move) => {
        settled = { move };
        this.#interrupts.wakeUp();
      },
      (error: unknown) => {
        settled = { error };
        this.#interrupts.wakeUp();
      },
    );
    if (!staging.empty) {
      for (let turn = 0; turn < 2 && settled === undefined; turn++) await eventLoopTurn();
      // The carrier takes longer than a moment: commit what it was told, so that its start can be seen.
      if (settled === undefined && (await this.#commit(false)) === "left") return "left";
      if (this.#staging !== staging) return "on";
    }
    while (settled === undefined) {
      await this.#interrupts.event();
      this.#interrupts.throwIfLost();
      if (this.#stalePending) await this.#readPending();
      const { cancel } = this.#run.state;
      if (cancel !== null && settled === undefined) {
        this.#interrupts.stop.abort(canceled(this.claim.runId, cancel.reason));
        await Promise.race([asked, this.#grace()]);
        return "on";
      }
    }
    if ("error" in settled) throw settled.error;
    return settled.move;
  }

  async #fail(
    error: CallError,
    retryable: boolean,
    retryAfterMs: number | null,
    usage: Usage | null,
  ): Promise<Progress> {
    const { attempt, failures } = this.#run.state;
    this.#paidMove = null;
    if (!retryable || failures + 1 >= this.#agent.definition.maxAttempts) {
      return this.#end({ kind: "failed", error }, usage);
    }
    const retryInMs = retryPauseMs(this.#host.settings, failures + 1, retryAfterMs);
    this.#staging.add({ type: "attempt_failed", attempt, error, retryInMs, usage });
    this.#dropSession();
    return this.#park({ on: "retry", attempt: attempt + 1 }, retryInMs);
  }

  async #end(end: RunEnd, usage: Usage | null = null): Promise<Progress> {
    const { state } = this.#run;
    const unread: UnreadResult[] = [];
    for (const { delegationId, kind, digest, body } of this.#inbox.values()) {
      if (kind !== "result" || !state.delegations.open.some((one) => one.delegationId === delegationId))
        continue;
      const envelope = JSON.parse(body) as ResultEnvelope;
      unread.push({ delegationId, digest, usage: envelope.usage, treeRunsUsed: envelope.treeRunsUsed });
    }
    this.#staging.add(...accepted(state.header.runId, decideEnd(state, end, usage, unread)));
    return this.#commit(end.kind === "completed");
  }

  async #endCanceled(reason: string): Promise<Progress> {
    if (this.#executions.busy) {
      this.#executions.abort(canceled(this.claim.runId, reason));
      let over = false;
      const grace = this.#grace().then(() => void (over = true));
      while (this.#executions.busy && !over) await Promise.race([this.#interrupts.event(), grace]);
      this.#interrupts.throwIfLost();
      this.#executions.forget();
    }
    recordOutcomes(this.#scope());
    const { move, step } = this.#paidMove ?? {};
    const unpaid =
      step === this.#run.state.nextStep && move !== undefined && "usage" in move ? move.usage : null;
    return this.#end({ kind: "canceled", reason, confirmed: await this.#cancelPeer(reason) }, unpaid);
  }

  /** Tells the peer that carries the Run, if one does. True once nothing of the work is left running. */
  async #cancelPeer(reason: string): Promise<boolean> {
    const { definition } = this.#agent;
    if (definition.kind !== "remote") return true;
    this.#session ??= definition.open();
    try {
      const asked =
        this.#session.cancel?.(moveContext(this.#host, this.#run), reason) ??
        Promise.resolve("confirmed" as const);
      return (await Promise.race([asked, this.#grace()])) === "confirmed";
    } catch (error) {
      const { telemetry, tenant } = this.#host;
      telemetry.emit({ type: "unexpected", tenant, runId: this.claim.runId, error });
      return false;
    }
  }

  #park(wait: Wait, dueInMs: number | null): Promise<Progress> {
    const authorizes = this.#staging.children.length > 0;
    this.#staging.add({ type: "parked", wait, dueInMs });
    return this.#commit(authorizes);
  }

  /** Gives the claim back at a safe point; the Run is ready for any worker at once. */
  async #handBack(): Promise<Progress> {
    if (!this.#staging.empty && !this.#staging.durable && (await this.#commit(false)) === "left")
      return "left";
    const { runId, epoch } = this.claim;
    await this.#host.store.release(this.#host.tenant, this.#host.incarnation, [{ runId, epoch }]);
    this.#dropSession();
    return "left";
  }

  /** Commits what is staged. After a refusal the Run is read again, and everything is decided anew. */
  async #commit(authorizes: boolean): Promise<Progress> {
    const written = await this.#writer.write(this.#staging, authorizes);
    if (!written.stands) {
      await this.#reload();
      return "on";
    }
    const { receipt, facts } = written;
    if (this.#paidMove !== null && this.#paidMove.step < this.#run.state.nextStep) this.#paidMove = null;
    for (const fact of facts) {
      if (fact.type === "call_completed" || fact.type === "call_indeterminate") {
        this.#executions.finished.delete(fact.index);
      }
    }
    const { signalSeq, controlSeq } = this.#writer;
    if (receipt.signalSeq !== signalSeq || receipt.controlSeq !== controlSeq) this.#stalePending = true;
    const last = facts.at(-1);
    if (last?.type === "run_ended") {
      this.#dropSession();
      this.#host.ended(this.claim.runId, last.end);
      return "left";
    }
    if (!receipt.parked) return "on";
    // With an envelope left unread, the next claim has to look at the inbox again.
    const seen = this.#inbox.size === 0 ? signalSeq : -1;
    this.#host.keepWarm(this.claim.runId, { run: this.#run, session: this.#session, signalSeq: seen });
    return "left";
  }

  /** An error that no rule foresaw. A lost claim is simply left; anything else is a failed attempt, so that it ends. */
  async #surrender(error: unknown): Promise<void> {
    const { tenant, telemetry, store, incarnation } = this.#host;
    const { runId, epoch } = this.claim;
    const abandon = (why: unknown): void => {
      telemetry.emit({ type: "run_abandoned", tenant, runId, reason: messageOf(why) });
    };
    this.#dropSession();
    if (error instanceof LostClaim || this.#interrupts.isLost) return abandon(error);
    // Nothing is wrong with the Run: the claim is still held, and the next heartbeat takes it up again.
    if (passes(error)) return abandon(error);
    telemetry.emit({ type: "unexpected", tenant, runId, error });
    try {
      await this.#reload();
      await this.#readPending();
      const { attempt, attemptOpen } = this.#run.state;
      // It may have failed before it could say that it began.
      if (!attemptOpen) this.#staging.add({ type: "attempt_started", attempt: attempt + 1 });
      const settled = await this.#fail(
        { code: "runtime_error", message: messageOf(error) },
        true,
        null,
        null,
      );
      if (settled === "left") return;
    } catch (second) {
      // Given back it would be claimed again at once; held, it is tried again at the next heartbeat.
      return abandon(second);
    }
    await store
      .release(tenant, incarnation, [{ runId, epoch }])
      .catch((third: unknown) =>
        telemetry.emit({ type: "store_trouble", tenant, during: "release", error: third }),
      );
  }

  /** A read that the store does not answer is not the Run's failure: it is made again while the claim lasts. */
  #insist<T>(during: string, call: () => Promise<T>): Promise<T> {
    const { committer, tenant } = this.#host;
    return committer.insist(tenant, during, call, () => this.#interrupts.whenLost());
  }

  #scope(): BatchScope {
    const { tenant, catalog, store } = this.#host;
    return {
      tenant,
      catalog,
      agent: this.#agent,
      executions: this.#executions,
      staging: this.#staging,
      inbox: this.#inbox,
      now: store.now(),
    };
  }

  #dropSession(): void {
    this.#session?.dispose();
    this.#session = null;
  }

  #grace(): Promise<void> {
    const { clock, settings } = this.#host;
    return sleep(clock, settings.cancelGraceMs, this.#interrupts.whenLost()).catch(() => undefined);
  }
}

function canceled(runId: string, reason: string): ErrandError {
  return new ErrandError("RUN_CANCELED", `${runId} is canceled: ${reason}.`, "Stop working on it.");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
