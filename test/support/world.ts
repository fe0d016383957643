import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, vi } from "vitest";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { Clock } from "../../src/runtime/ports/clock.ts";
import type { Store } from "../../src/runtime/ports/store.ts";
import type { TelemetryEvent } from "../../src/runtime/ports/telemetry.ts";
import type { RuntimeSettings } from "../../src/runtime/step/runtime-settings.ts";
import { verifyStore } from "../../src/runtime/verify/verify-store.ts";
import type { WorkerOptions } from "../../src/runtime/worker/worker.ts";
import { createMemoryStore } from "../../src/stores/memory/index.ts";
import { createPostgresStore } from "../../src/stores/postgres/index.ts";
import { createSqliteStore } from "../../src/stores/sqlite/index.ts";
import { createErrand } from "../../src/surfaces/library/create-errand.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { HandClock } from "../../src/testing/hand-clock.ts";
import { type StoreHooks, hookedStore, watchedStore } from "./hooked-store.ts";
import { takeSchema } from "./postgres-schemas.ts";

vi.setConfig({ testTimeout: 15_000 });

/** The store under the Errands of one test: what each of them connects to, and what is left of it afterwards. */
interface Base {
  connect(): Promise<Store>;
  dispose(): Promise<void>;
}

/** What a store must be able to do for some tests; each states which it can. */
type Claim = "limits";

interface Kind {
  readonly store: string;
  readonly claims: readonly Claim[];
  /** How many workers an Errand gets, each with a connection of its own, if the test says nothing of workers or hooks. */
  readonly workersEach?: number;
  open(clock: Clock): Promise<Base>;
}

const POSTGRES: Kind = {
  store: "PostgreSQL",
  claims: [],
  async open(clock) {
    const taken = await takeSchema();
    const { schema, pool, url } = taken;
    const connected: Store[] = [];
    return {
      async connect() {
        const store = await createPostgresStore({ pool, schema, listen: url, clock });
        connected.push(store);
        return store;
      },
      async dispose() {
        await Promise.all(connected.map((store) => store.close()));
        await taken.giveBack();
      },
    };
  },
};

const TWO_WORKERS: Kind = { ...POSTGRES, store: "PostgreSQL, two workers", workersEach: 2 };

const KINDS: readonly Kind[] = [
  {
    store: "memory",
    claims: ["limits"],
    async open(clock) {
      const store = createMemoryStore({ clock });
      // It lives as long as the test: closing one Errand does not take it from the others.
      const shared = new Proxy(store, {
        get: (target, name) => {
          if (name === "close") return async () => undefined;
          const member: unknown = Reflect.get(target, name, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      return { connect: async () => shared, dispose: () => store.close() };
    },
  },
  {
    store: "SQLite",
    claims: ["limits"],
    async open(clock) {
      const folder = mkdtempSync(join(tmpdir(), "errand-test-"));
      const connected: Store[] = [];
      return {
        async connect() {
          const options = { clock, pollMs: 2, durability: "normal" } as const;
          const store = await createSqliteStore(join(folder, "errand.db"), options);
          connected.push(store);
          return store;
        },
        async dispose() {
          await Promise.all(connected.map((store) => store.close()));
          rmSync(folder, { recursive: true });
        },
      };
    },
  },
  POSTGRES,
];

export interface WorldErrandOptions {
  readonly agents: readonly AgentDefinition[];
  readonly tenant?: string;
  readonly worker?: Partial<WorkerOptions> | false;
  readonly settings?: Partial<RuntimeSettings>;
  /** What happens around this Errand's calls of the store. */
  readonly hooks?: StoreHooks;
}

/** Times of a worker in a test: a heartbeat a second, dead after three. */
export const LEASE_MS = 3_000;
export const HEARTBEAT_MS = 1_000;

/** How long work that does not come to rest is waited for, in real time. */
const LONGEST_REST_MS = 2_000;

/** One store and the Errands on it, under one clock that moves only by `pass`. Its end verifies what is left. */
export class World implements AsyncDisposable {
  readonly clock = new HandClock();
  readonly told: TelemetryEvent[] = [];
  /** Set by a test that writes what the runtime never would: its log is not verified afterwards. */
  tampered = false;
  readonly #errands: Errand[] = [];
  #base!: Base;
  #workersEach = 1;
  #callsUnderWay = 0;

  static async open(kind: Kind): Promise<World> {
    const world = new World();
    world.#base = await kind.open(world.clock);
    world.#workersEach = kind.workersEach ?? 1;
    return world;
  }

  /** Another connection to the store; of a memory store, the store itself. */
  connect(hooks: StoreHooks = {}): Promise<Store> {
    return this.#base.connect().then((store) => hookedStore(watchedStore(store, this.#entered), hooks));
  }

  /** An Errand with a worker of its own name; several on one store are several processes. */
  async errand(options: WorldErrandOptions): Promise<Errand> {
    const isLeftAlone = options.worker === undefined && options.hooks === undefined;
    if (!isLeftAlone || this.#workersEach === 1) return this.#open(options);
    const errand = await this.#open({ ...options, hooks: handsOver() });
    for (let more = 1; more < this.#workersEach; more++) await this.#open({ ...options, hooks: handsOver() });
    return errand;
  }

  async #open(options: WorldErrandOptions): Promise<Errand> {
    const { hooks, worker, settings, agents, tenant } = options;
    const errand = await createErrand({
      store: this.connect(hooks),
      agents,
      ...(tenant === undefined ? {} : { tenant }),
      clock: this.clock,
      telemetry: { emit: (event) => void this.told.push(event) },
      settings: { retryFirstMs: 100, cancelGraceMs: 500, ...settings },
      worker:
        worker === false
          ? false
          : {
              name: `worker-${this.#errands.length + 1}`,
              leaseMs: LEASE_MS,
              pollMs: HEARTBEAT_MS,
              sweepMs: HEARTBEAT_MS,
              ...worker,
            },
    });
    this.#errands.push(errand);
    return errand;
  }

  readonly #entered = (): (() => void) => {
    this.#callsUnderWay += 1;
    return () => {
      this.#callsUnderWay -= 1;
    };
  };

  /**
   * Lets the event loop turn until no call of the store has been under way for `quiet` turns in a row: what can happen
   * without more time has happened. Of work that does not come to rest it waits for a part.
   */
  async settled(quiet = 6): Promise<void> {
    const deadline = performance.now() + LONGEST_REST_MS;
    for (let calm = 0; calm < quiet && performance.now() < deadline; ) {
      await turns(1);
      calm = this.#callsUnderWay === 0 ? calm + 1 : 0;
    }
  }

  /** Lets time go by in small steps, each with the work that comes due in it. */
  async pass(ms: number, stepMs = 250): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await this.settled();
    }
  }

  /** Lets time go by until `what` holds, two minutes at most. */
  async passUntil(what: () => boolean | Promise<boolean>): Promise<void> {
    for (let step = 0; step < 480; step++) {
      if (await what()) return;
      await this.pass(250);
    }
    throw new Error("It did not come true within two minutes of the test's clock.");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const errand of this.#errands) {
      errand.worker?.kill();
      await errand.close();
    }
    try {
      await until(() => this.#callsUnderWay === 0);
      await this.#verify();
    } finally {
      await this.#base.dispose();
    }
  }

  /** Whatever a test was about, what it leaves behind is rebuilt from the log and compared (L2). */
  async #verify(): Promise<void> {
    if (this.tampered) return;
    const store = await this.connect();
    for (const tenant of new Set(this.#errands.map((errand) => errand.tenant))) {
      const { problems } = await verifyStore(store, tenant);
      if (problems.length > 0) throw new Error(`The log does not hold: ${JSON.stringify(problems, null, 2)}`);
    }
  }
}

/** A worker that leaves to the others what every second commit of it makes ready. */
function handsOver(): StoreHooks {
  let commits = 0;
  let isDeaf = false;
  return {
    commit(commit) {
      isDeaf = commits++ % 2 === 0;
      if (!isDeaf) return commit;
      return { ...commit, claim: null, create: commit.create.map((run) => ({ ...run, claim: false })) };
    },
    // A hint that names its Run is of the worker's own store.
    wake: (hint) => !isDeaf || hint.kind !== "ready" || hint.runId === null,
  };
}

/** Declares the same tests for every store; each test opens its own world. */
export function onEachStore(title: string, tests: (open: () => Promise<World>) => void): void {
  onStores(title, {}, tests);
}

export interface WhichStores {
  /** Only stores that claim to be able to do this. */
  readonly needs?: readonly Claim[];
  /** The tests also hold when another worker may take any Run at any time. */
  readonly anyWorker?: boolean;
}

/** Declares the same tests for the stores that they hold on. */
export function onStores(
  title: string,
  { needs = [], anyWorker = false }: WhichStores,
  tests: (open: () => Promise<World>) => void,
): void {
  const kinds = anyWorker ? [...KINDS, TWO_WORKERS] : KINDS;
  const able = kinds.filter(({ claims }) => needs.every((claim) => claims.includes(claim)));
  for (const kind of able) {
    // A wake between two sessions is a hint and may be lost. What saves the Run then is the next poll, and a test's clock
    // polls only when the test moves it; so where wakes cross sessions, a test that hung on one is given another go.
    const retry = kind.store.startsWith("PostgreSQL") ? 2 : 0;
    describe(`${title} (${kind.store})`, { retry }, () => tests(() => World.open(kind)));
  }
}

/** Lets the event loop turn; for what must not wait for the store, see `World.settled`. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Polls in real time, without moving the clock, until `check` neither throws nor answers false. */
export async function until(check: () => unknown): Promise<void> {
  await vi.waitFor(
    async () => {
      if ((await check()) === false) throw new Error("It has not come true.");
    },
    { interval: 1, timeout: 5_000 },
  );
}
