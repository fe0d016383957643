import { ErrandError } from "../domain/errand-error.ts";
import type { Clock } from "../runtime/ports/clock.ts";
import type { Commit, Store, WakeHint } from "../runtime/ports/store.ts";
import { type Fault, type FaultPlan, type StoreMethod, commitPoints } from "./fault-plan.ts";

type Result<M extends StoreMethod> = Awaited<ReturnType<Store[M]>>;

/** One of its own for each caller: a shared one would keep them all. */
const never = (): Promise<never> => new Promise(() => undefined);

/**
 * One process's connection to a store that it shares with others: calls are lost, delayed, doubled or answered in vain as
 * a plan says, and the process may die over one. Wrap one store once for each worker of a test:
 *
 * @example
 * const store = createMemoryStore({ clock });
 * const first = new FaultyStore(store, { client: "w1", clock, plan: plannedFaults([{ point: "run_ended", fault: { kind: "lose_reply" } }]) });
 */
export class FaultyStore implements Store {
  readonly capabilities: Store["capabilities"];
  readonly client: string;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #plan: FaultPlan;
  readonly #onCrash: () => void;
  readonly #unsubscribe = new Set<() => void>();
  #dead = false;

  /** @param options `onCrash` is told when the process dies; from then on no call is answered and no wake arrives */
  constructor(
    store: Store,
    options: {
      readonly client: string;
      readonly clock: Clock;
      readonly plan: FaultPlan;
      readonly onCrash?: () => void;
    },
  ) {
    this.#store = store;
    this.capabilities = store.capabilities;
    this.client = options.client;
    this.#clock = options.clock;
    this.#plan = options.plan;
    this.#onCrash = options.onCrash ?? ((): void => undefined);
  }

  /** True once the process has died. */
  get dead(): boolean {
    return this.#dead;
  }

  /** The process dies now. */
  crash(): void {
    if (this.#dead) return;
    this.#dead = true;
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#unsubscribe.clear();
    this.#onCrash();
  }

  /** An operator's doing is not made faulty. */
  get operations(): Store["operations"] {
    return this.#store.operations;
  }

  now(): number {
    return this.#store.now();
  }

  commit(commit: Commit): Promise<Result<"commit">> {
    return this.#call("commit", () => this.#store.commit(commit), commit);
  }
  registerWorker(...args: Parameters<Store["registerWorker"]>): Promise<void> {
    return this.#call("registerWorker", () => this.#store.registerWorker(...args));
  }
  heartbeat(...args: Parameters<Store["heartbeat"]>): Promise<Result<"heartbeat">> {
    return this.#call("heartbeat", () => this.#store.heartbeat(...args));
  }
  deregisterWorker(...args: Parameters<Store["deregisterWorker"]>): Promise<void> {
    return this.#call("deregisterWorker", () => this.#store.deregisterWorker(...args));
  }
  reapWorkers(...args: Parameters<Store["reapWorkers"]>): Promise<Result<"reapWorkers">> {
    return this.#call("reapWorkers", () => this.#store.reapWorkers(...args));
  }
  listWorkers(...args: Parameters<Store["listWorkers"]>): Promise<Result<"listWorkers">> {
    return this.#call("listWorkers", () => this.#store.listWorkers(...args));
  }
  claim(...args: Parameters<Store["claim"]>): Promise<Result<"claim">> {
    return this.#call("claim", () => this.#store.claim(...args));
  }
  release(...args: Parameters<Store["release"]>): Promise<void> {
    return this.#call("release", () => this.#store.release(...args));
  }
  nextDueAt(...args: Parameters<Store["nextDueAt"]>): Promise<number | null> {
    return this.#call("nextDueAt", () => this.#store.nextDueAt(...args));
  }
  getRun(...args: Parameters<Store["getRun"]>): Promise<Result<"getRun">> {
    return this.#call("getRun", () => this.#store.getRun(...args));
  }
  listRuns(...args: Parameters<Store["listRuns"]>): Promise<Result<"listRuns">> {
    return this.#call("listRuns", () => this.#store.listRuns(...args));
  }
  countRuns(...args: Parameters<Store["countRuns"]>): Promise<Result<"countRuns">> {
    return this.#call("countRuns", () => this.#store.countRuns(...args));
  }
  readLog(...args: Parameters<Store["readLog"]>): Promise<Result<"readLog">> {
    return this.#call("readLog", () => this.#store.readLog(...args));
  }
  readPending(...args: Parameters<Store["readPending"]>): Promise<Result<"readPending">> {
    return this.#call("readPending", () => this.#store.readPending(...args));
  }
  getTicket(...args: Parameters<Store["getTicket"]>): Promise<Result<"getTicket">> {
    return this.#call("getTicket", () => this.#store.getTicket(...args));
  }
  listTickets(...args: Parameters<Store["listTickets"]>): Promise<Result<"listTickets">> {
    return this.#call("listTickets", () => this.#store.listTickets(...args));
  }
  getDelegation(...args: Parameters<Store["getDelegation"]>): Promise<Result<"getDelegation">> {
    return this.#call("getDelegation", () => this.#store.getDelegation(...args));
  }
  listDelegations(...args: Parameters<Store["listDelegations"]>): Promise<Result<"listDelegations">> {
    return this.#call("listDelegations", () => this.#store.listDelegations(...args));
  }
  listInbox(...args: Parameters<Store["listInbox"]>): Promise<Result<"listInbox">> {
    return this.#call("listInbox", () => this.#store.listInbox(...args));
  }
  pendingIntents(...args: Parameters<Store["pendingIntents"]>): Promise<Result<"pendingIntents">> {
    return this.#call("pendingIntents", () => this.#store.pendingIntents(...args));
  }
  orphanedDelegations(
    ...args: Parameters<Store["orphanedDelegations"]>
  ): Promise<Result<"orphanedDelegations">> {
    return this.#call("orphanedDelegations", () => this.#store.orphanedDelegations(...args));
  }
  putPublication(...args: Parameters<Store["putPublication"]>): Promise<void> {
    return this.#call("putPublication", () => this.#store.putPublication(...args));
  }
  getPublication(...args: Parameters<Store["getPublication"]>): Promise<Result<"getPublication">> {
    return this.#call("getPublication", () => this.#store.getPublication(...args));
  }
  headPublication(...args: Parameters<Store["headPublication"]>): Promise<Result<"headPublication">> {
    return this.#call("headPublication", () => this.#store.headPublication(...args));
  }
  listPublications(...args: Parameters<Store["listPublications"]>): Promise<Result<"listPublications">> {
    return this.#call("listPublications", () => this.#store.listPublications(...args));
  }
  readFeed(...args: Parameters<Store["readFeed"]>): Promise<Result<"readFeed">> {
    return this.#call("readFeed", () => this.#store.readFeed(...args));
  }

  onWake(listener: (hint: WakeHint) => void): () => void {
    if (this.#dead) return () => undefined;
    const unsubscribe = this.#store.onWake((hint) => this.#wake(listener, hint));
    this.#unsubscribe.add(unsubscribe);
    return () => {
      unsubscribe();
      this.#unsubscribe.delete(unsubscribe);
    };
  }

  /** Closes this connection only; the shared store stays open for the others. */
  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#unsubscribe.clear();
  }

  async #call<T>(method: StoreMethod, run: () => Promise<T>, commit: Commit | null = null): Promise<T> {
    if (this.#dead) return never();
    const { client } = this;
    const fault = this.#plan.call({
      client,
      method,
      get points() {
        return commit === null ? [] : commitPoints(commit);
      },
    });
    return fault.kind === "none" ? this.#alive(run()) : this.#suffer(fault, method, run);
  }

  async #suffer<T>(
    fault: Exclude<Fault, { readonly kind: "none" }>,
    method: StoreMethod,
    run: () => Promise<T>,
  ): Promise<T> {
    switch (fault.kind) {
      case "crash_before":
        this.crash();
        return never();
      case "crash_after":
        await run().catch(() => undefined);
        this.crash();
        return never();
      case "drop":
        throw unavailable(method);
      case "lose_reply":
        await run();
        return this.#alive(Promise.reject<T>(unavailable(method)));
      case "delay": {
        await this.#pause(fault.beforeMs);
        // What was sent before the process died still arrives.
        const result = await run();
        await this.#pause(fault.afterMs);
        return this.#alive(Promise.resolve(result));
      }
      case "double": {
        const result = await run();
        this.#clock.timer(fault.againAfterMs, () => void run().catch(() => undefined));
        return this.#alive(Promise.resolve(result));
      }
      default:
        return fault satisfies never;
    }
  }

  /** Nobody is there to hear the answer once the process is dead. */
  async #alive<T>(answer: Promise<T>): Promise<T> {
    try {
      const value = await answer;
      return this.#dead ? never() : value;
    } catch (error) {
      if (this.#dead) return never();
      throw error;
    }
  }

  #pause(ms: number): Promise<void> {
    return ms <= 0 ? Promise.resolve() : new Promise((resolve) => void this.#clock.timer(ms, resolve));
  }

  #wake(listener: (hint: WakeHint) => void, hint: WakeHint): void {
    const fault = this.#plan.wake(this.client, hint);
    switch (fault.kind) {
      case "none":
        return listener(hint);
      case "drop":
        return;
      case "double":
        listener(hint);
        return listener(hint);
      case "delay":
        this.#clock.timer(fault.ms, () => {
          if (!this.#dead) listener(hint);
        });
        return;
      default:
        fault satisfies never;
    }
  }
}

function unavailable(method: StoreMethod): ErrandError {
  return new ErrandError(
    "STORE_UNAVAILABLE",
    `The store did not answer ${method}.`,
    "The call may have been carried out or not; send it again.",
  );
}
