import { ErrandError } from "../../domain/errand-error.ts";
import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { PublicationCatalog } from "../catalog/publication-catalog.ts";
import { Committer, passes } from "../commit/committer.ts";
import type { Clock } from "../ports/clock.ts";
import type { LiveBus } from "../ports/live-bus.ts";
import type { ClaimedRun, InboxRow, Store } from "../ports/store.ts";
import { type Telemetry, unfailing } from "../ports/telemetry.ts";
import { deliverIntents, reportOrphans } from "../propagation/sweeps.ts";
import { LoadedRun } from "../run/loaded-run.ts";
import type { DriverHost } from "../step/driver-host.ts";
import { LostClaim } from "../step/lost-claim.ts";
import { RunDriver } from "../step/run-driver.ts";
import type { RuntimeSettings } from "../step/runtime-settings.ts";
import { WarmRuns } from "./warm-runs.ts";

/** How a worker works. Every time is in milliseconds. */
export interface WorkerOptions {
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** Runs carried at the same time. */
  readonly concurrency: number;
  /** A worker whose heartbeat is older than this is dead to the others; it renews three times as often. */
  readonly leaseMs: number;
  /** How often to look for work when no wake says so. */
  readonly pollMs: number;
  /** How often to look for dead workers, undelivered intents and missing children. */
  readonly sweepMs: number;
  /** Parked Runs kept decoded in memory. */
  readonly warmRuns: number;
}

export interface WorkerParts {
  readonly tenant: TenantId;
  readonly store: Store;
  readonly catalog: PublicationCatalog;
  readonly clock: Clock;
  readonly bus: LiveBus;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  readonly options: WorkerOptions;
  /** False when no process of this machine has the pid. */
  readonly isProcessAlive: (pid: number) => boolean;
  readonly newIncarnation: () => IncarnationId;
}

/** Looking for missing children costs a look at every live Run, so only one sweep in so many does it. */
const ORPHAN_SWEEPS = 12;

const DEREGISTER_TRIES = 3;

/*
 * A worker: claims Runs of one tenant and drives them.
 *
 * W1 A lease belongs to an incarnation. When it is lost, everything that runs under it is aborted and the worker begins
 *    again as a new incarnation (L4).
 * W2 Every heartbeat reads back what the store says is held: what is unknown here is adopted, what is unknown there is
 *    dropped, so that a lost reply orphans nothing.
 * W3 Wakes are hints: polling alone ends every Run.
 */
export class Worker implements DriverHost {
  readonly tenant: TenantId;
  readonly store: Store;
  readonly catalog: PublicationCatalog;
  readonly clock: Clock;
  readonly bus: LiveBus;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  readonly committer: Committer;
  readonly carries: ReadonlySet<string>;
  incarnation: IncarnationId;
  draining = false;
  /** Told of ends that this worker committed; for whoever waits in the same process. */
  onEnded: (runId: RunId, end: RunEnd) => void = () => undefined;
  readonly #options: WorkerOptions;
  readonly #newIncarnation: () => IncarnationId;
  readonly #isProcessAlive: (pid: number) => boolean;
  readonly #drivers = new Map<RunId, { readonly driver: RunDriver; readonly done: Promise<void> }>();
  readonly #warm: WarmRuns;
  readonly #stop = new AbortController();
  readonly #timers = new Map<string, () => void>();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #sweeps = 0;
  #driversMade = 0;
  #claiming = false;
  #claimAgain = false;
  #unsubscribe: () => void = () => undefined;
  readonly #background = new Set<Promise<void>>();
  #idle: (() => void)[] = [];

  constructor(parts: WorkerParts) {
    this.tenant = parts.tenant;
    this.store = parts.store;
    this.catalog = parts.catalog;
    this.clock = parts.clock;
    this.bus = parts.bus;
    this.telemetry = unfailing(parts.telemetry);
    this.settings = parts.settings;
    this.#options = parts.options;
    this.#newIncarnation = parts.newIncarnation;
    this.#isProcessAlive = parts.isProcessAlive;
    this.incarnation = parts.newIncarnation();
    this.committer = new Committer(parts.store, parts.clock, this.telemetry);
    this.carries = new Set<string>(parts.catalog.carries.keys());
    this.#warm = new WarmRuns(parts.options.warmRuns);
  }

  /** Runs under way right now. */
  get active(): number {
    return this.#drivers.size;
  }

  get warmRuns(): number {
    return this.#warm.size;
  }

  async start(): Promise<void> {
    await this.#register();
    this.#unsubscribe = this.store.onWake((hint) => {
      if (hint.tenant !== this.tenant) return;
      if (hint.kind === "signal" && hint.runId !== null) this.#drivers.get(hint.runId)?.driver.wake();
      else if (hint.kind === "ready") this.claimSoon();
    });
    this.#repeat("heartbeat", Math.max(1, Math.floor(this.#options.leaseMs / 3)), () => {
      if (this.clock.monotonic() - this.#renewedAt >= this.#options.leaseMs) {
        // Another worker may have taken over: what runs here must not go on. What is still held is taken up again.
        this.#abortAll("the lease was not renewed in time");
      }
      return this.heartbeat();
    });
    this.#repeat("sweep", this.#options.sweepMs, () => this.sweep());
    this.#repeat("poll", this.#options.pollMs, () => this.claim());
    this.#inBackground("sweep", () => this.sweep());
    this.claimSoon();
  }

  /**
   * Stops claiming, lets every Run reach a safe point and hands it back; after `graceMs` what is left is aborted.
   * Its claims are then recovered like those of a crashed worker.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.draining = true;
    this.#unsubscribe();
    for (const name of ["poll", "sweep"]) this.#cancelTimer(name);
    for (const { driver } of this.#drivers.values()) driver.wake();
    const drained = this.#allDone();
    let cancelGrace = (): void => undefined;
    const grace = new Promise<void>((resolve) => {
      cancelGrace = this.clock.timer(graceMs, resolve);
    });
    await Promise.race([drained, grace]);
    cancelGrace();
    this.kill();
    const last = await Promise.allSettled([drained, Promise.all(this.#background), this.#deregister()]);
    const failures = last.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
    if (failures.length > 0) throw new AggregateError(failures, "the worker did not stop cleanly");
  }

  /** Lets go of everything at once without a word to the store, as a crash would. */
  kill(): void {
    for (const name of this.#timers.keys()) this.#cancelTimer(name);
    this.#unsubscribe();
    this.#stop.abort(new LostClaim("the worker stopped"));
    this.#abortAll("the worker stopped");
    this.#warm.clear();
  }

  leaseIsFresh(): boolean {
    return this.clock.monotonic() - this.#renewedAt < this.#options.leaseMs * 0.8;
  }

  freeSlots(): number {
    return Math.max(0, this.#options.concurrency - this.#drivers.size);
  }

  keepWarm(runId: RunId, warm: Parameters<DriverHost["keepWarm"]>[1]): void {
    if (!this.#stop.signal.aborted) this.#warm.keep(runId, warm);
  }

  /** Keeps a root Run that this process has just created in memory: it is likely to claim it next, unless it waits. */
  expect(header: RunHeader, delayMs: number): void {
    if (delayMs > 0) return;
    const run = LoadedRun.created({ type: "run_created", header, delayMs });
    if (this.carries.has(header.publication))
      this.keepWarm(header.runId, { run, session: null, signalSeq: 0 });
  }

  takeWarm(runId: RunId): ReturnType<DriverHost["takeWarm"]> {
    return this.#warm.take(runId);
  }

  adopt(claims: readonly ClaimedRun[], handed: readonly InboxRow[]): void {
    for (const claim of claims) {
      this.#drive(
        claim,
        handed.filter((row) => row.parentRunId === claim.runId),
      );
    }
  }

  ended(runId: RunId, end: RunEnd): void {
    this.onEnded(runId, end);
  }

  intentsRecorded(): void {
    this.#inBackground("intents", () =>
      deliverIntents(this.store, this.committer, this.tenant, this.#stop.signal),
    );
  }

  /** Looks for work as soon as the current turn of the event loop is over; many calls are one look. */
  claimSoon(): void {
    if (this.#timers.has("soon") || this.draining || this.#stop.signal.aborted) return;
    const handle = setImmediate(() => {
      this.#timers.delete("soon");
      this.#inBackground("claim", () => this.claim());
    });
    this.#timers.set("soon", () => clearImmediate(handle));
  }

  /** Claims as many due Runs as there are free slots. */
  async claim(): Promise<void> {
    if (this.#claiming) {
      this.#claimAgain = true;
      return;
    }
    this.#claiming = true;
    try {
      do {
        this.#claimAgain = false;
        const limit = this.freeSlots();
        if (limit === 0 || this.draining || this.#stop.signal.aborted) break;
        const { incarnation } = this;
        const claims = await this.store.claim(this.tenant, { incarnation, carries: this.carries, limit });
        if (incarnation === this.incarnation) this.adopt(claims, []);
      } while (this.#claimAgain);
    } finally {
      this.#claiming = false;
    }
    await this.#armDueTimer();
  }

  async heartbeat(): Promise<void> {
    const { incarnation } = this;
    const asked = this.clock.monotonic();
    const known = new Map([...this.#drivers].map(([runId, { driver }]) => [runId, driver]));
    const { alive, held } = await this.store.heartbeat(this.tenant, incarnation);
    if (incarnation !== this.incarnation || this.#stop.signal.aborted) return;
    if (!alive) {
      await this.#loseLease();
      return;
    }
    this.#renewedAt = asked;
    const heldEpochs = new Map(held.map((claim) => [claim.runId, claim]));
    for (const [runId, { driver }] of this.#drivers) {
      const claim = heldEpochs.get(runId);
      if (claim === undefined || claim.epoch !== driver.claim.epoch) {
        // A Run that was claimed, or claimed again, while the heartbeat was under way is not in its answer yet.
        if (known.get(runId) === driver) driver.lose("the store no longer knows this claim");
      } else if (claim.signalSeq !== driver.claim.signalSeq || claim.controlSeq !== driver.claim.controlSeq)
        driver.wake();
    }
    for (const claim of held) if (!known.has(claim.runId)) this.#drive(claim, []);
  }

  /** What any worker does for all: finds dead workers, delivers intents, reports missing children. */
  async sweep(): Promise<void> {
    const { signal } = this.#stop;
    for (const incarnation of await this.store.reapWorkers(this.tenant, this.#options.leaseMs)) {
      this.telemetry.emit({ type: "worker_dead", tenant: this.tenant, incarnation });
    }
    await this.#buryProcesses();
    await deliverIntents(this.store, this.committer, this.tenant, signal);
    if (this.#sweeps++ % ORPHAN_SWEEPS === 1) {
      await reportOrphans(this.store, this.committer, this.tenant, signal);
    }
  }

  /**
   * Frees what workers hold whose process is gone from this machine: no need to wait for their lease. A pid that another
   * process has taken since only means waiting after all.
   */
  async #buryProcesses(): Promise<void> {
    if (!this.store.capabilities.oneHost) return;
    for (const { incarnation, host, pid, dead } of await this.store.listWorkers(this.tenant)) {
      if (dead || host !== this.#options.host || this.#isProcessAlive(pid)) continue;
      await this.store.deregisterWorker(this.tenant, incarnation);
      this.telemetry.emit({ type: "worker_dead", tenant: this.tenant, incarnation });
    }
  }

  /** Resolves once no Run is under way. */
  async whenIdle(): Promise<void> {
    if (this.#drivers.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #register(): Promise<void> {
    const asked = this.clock.monotonic();
    await this.store.registerWorker(this.tenant, {
      incarnation: this.incarnation,
      name: this.#options.name,
      host: this.#options.host,
      pid: this.#options.pid,
      publications: [...this.catalog.carries.keys()],
    });
    this.#renewedAt = asked;
  }

  async #loseLease(): Promise<void> {
    this.telemetry.emit({ type: "worker_lost_lease", tenant: this.tenant, incarnation: this.incarnation });
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    this.#abortAll("the lease was lost");
    this.#warm.clear();
    if (this.draining) return;
    this.incarnation = this.#newIncarnation();
    await this.#register();
    this.claimSoon();
  }

  /** A connection may have died unnoticed, so one failure is not the last word; then its lease runs out by itself. */
  async #deregister(): Promise<void> {
    for (let tried = 1; ; tried++) {
      try {
        return await this.store.deregisterWorker(this.tenant, this.incarnation);
      } catch (error) {
        if (tried === DEREGISTER_TRIES || !passes(error)) throw error;
      }
    }
  }

  #drive(claim: ClaimedRun, handed: readonly InboxRow[]): void {
    if (this.#stop.signal.aborted) return;
    const before = this.#drivers.get(claim.runId);
    if (before !== undefined) {
      if (before.driver.claim.epoch >= claim.epoch) return;
      before.driver.lose("a newer claim has come");
    }
    const driver = new RunDriver(this, claim, handed, ++this.#driversMade);
    const done = (before?.done ?? Promise.resolve())
      .then(() => driver.drive())
      .then(() => {
        if (this.#drivers.get(claim.runId)?.driver !== driver) return;
        this.#drivers.delete(claim.runId);
        if (this.#drivers.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
        if (this.freeSlots() > 0) this.claimSoon();
      });
    this.#drivers.set(claim.runId, { driver, done });
  }

  #abortAll(reason: string): void {
    for (const { driver } of this.#drivers.values()) driver.lose(reason);
  }

  async #allDone(): Promise<void> {
    while (this.#drivers.size > 0) await Promise.all([...this.#drivers.values()].map((one) => one.done));
  }

  /** A timer for the next due Run that is nearer than the next poll. */
  async #armDueTimer(): Promise<void> {
    if (this.freeSlots() === 0 || this.draining || this.#stop.signal.aborted) return;
    const dueAt = await this.store.nextDueAt(this.tenant);
    this.#cancelTimer("due");
    if (dueAt === null || this.#stop.signal.aborted) return;
    const inMs = dueAt - this.store.now();
    if (inMs <= 0 || inMs >= this.#options.pollMs) return;
    this.#timers.set(
      "due",
      this.clock.timer(inMs, () => {
        this.#timers.delete("due");
        this.claimSoon();
      }),
    );
  }

  #repeat(name: string, everyMs: number, work: () => Promise<unknown>): void {
    const again = (): void => {
      this.#timers.set(
        name,
        this.clock.timer(everyMs, () => {
          this.#timers.delete(name);
          if (this.#stop.signal.aborted) return;
          again();
          this.#inBackground(name, work);
        }),
      );
    };
    again();
  }

  #cancelTimer(name: string): void {
    this.#timers.get(name)?.();
    this.#timers.delete(name);
  }

  /** Runs something nobody waits for; its failure is told, and the next poll tries again. */
  #inBackground(during: string, work: () => Promise<unknown>): void {
    const failed = (error: unknown): void => {
      if (this.#stop.signal.aborted || (ErrandError.is(error) && error.code === "STORE_CLOSED")) return;
      this.telemetry.emit({ type: "store_trouble", tenant: this.tenant, during, error });
    };
    const done = work().then(() => undefined, failed);
    this.#background.add(done);
    void done.then(() => this.#background.delete(done));
  }
}
