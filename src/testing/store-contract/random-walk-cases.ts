import assert from "node:assert/strict";
import type { CommitOutcome, RunRow } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id, type Held, type World } from "./world.ts";

/** A small generator of the same numbers for the same seed (mulberry32). */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const PARKED = ["waiting", "awaiting", "paused"] as const;

/** Does whatever may come: starts, claims, steps, late and stale writes, deaths. Keeps claims that are long lost. */
class Walk {
  readonly #world: World;
  readonly #below: (limit: number) => number;
  readonly #names: string[] = [];
  readonly #claims: Held[] = [];
  #workers = 1;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#below = numbersFrom(seed);
  }

  get names(): readonly string[] {
    return this.#names;
  }

  async step(): Promise<CommitOutcome | null> {
    const world = this.#world;
    switch (this.#below(12)) {
      case 0:
        return this.#start();
      case 1:
      case 2:
      case 3: {
        const incarnation = await world.worker(`w${this.#workers}`);
        for (const run of await world.claim(incarnation, 1 + this.#below(3))) {
          this.#claims.push(world.held(run, incarnation));
        }
        return null;
      }
      case 4:
      case 5:
      case 6:
        return this.#lane();
      case 7:
        return this.#signal();
      case 8:
        return this.#deliver();
      case 9:
        world.clock.advance(this.#below(400));
        return null;
      case 10:
        return this.#loseWorker();
      default: {
        const held = this.#pick(this.#claims);
        if (held !== undefined) await world.store.release(world.tenant, held.incarnation, [held]);
        return null;
      }
    }
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#below(Math.max(1, from.length))];
  }

  #start(): Promise<CommitOutcome> {
    const name = `r${this.#below(40)}`;
    if (!this.#names.includes(name)) this.#names.push(name);
    const parts = {
      threadId: id.thread(`t${this.#below(6)}`),
      priority: this.#below(10),
      delayMs: this.#below(2) * this.#below(300),
      claim: this.#below(2) === 0,
    };
    const parent = this.#below(3) === 0 ? this.#pick(this.#names) : undefined;
    const run =
      parent === undefined || parent === name
        ? this.#world.newRun(name, parts)
        : this.#world.newChild(name, parent, { ...parts, threadId: id.thread(`c${name}`) });
    return this.#world.commit({
      create: [run],
      claim: { incarnation: id.incarnation(`w${this.#workers}`), carries: CARRIES, parent: false },
    });
  }

  async #lane(): Promise<CommitOutcome | null> {
    const held = this.#pick(this.#claims);
    if (held === undefined) return null;
    const world = this.#world;
    const row = await world.store.getRun(world.tenant, held.runId);
    const signalSeqSeen = Math.max(0, (row?.signalSeq ?? 0) - this.#below(2));
    const kinds = [
      { kind: "hold" },
      { kind: "park", state: PARKED[this.#below(3)] ?? "waiting", dueInMs: this.#below(200), signalSeqSeen },
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen },
      { kind: "end", endKind: "completed" },
    ] as const;
    const parent = this.#pick(this.#names);
    const child = `d${this.#below(8)}`;
    const outcome = await world.commit({
      lane: world.lane(held, this.#pick(kinds)),
      deliver: parent !== undefined && this.#below(2) === 0 ? [world.delivery(child, parent)] : [],
    });
    if (outcome.kind === "committed") held.version += 1;
    return outcome;
  }

  async #signal(): Promise<CommitOutcome | null> {
    const name = this.#pick(this.#names);
    if (name === undefined) return null;
    const ifEnded = this.#below(2) === 0 ? "refuse" : "record";
    return this.#world.commit({
      signals: [this.#world.signal(name, { control: this.#below(3) === 0, ifEnded })],
    });
  }

  async #deliver(): Promise<CommitOutcome | null> {
    const parent = this.#pick(this.#names);
    const child = `d${this.#below(8)}`;
    if (parent === undefined) return null;
    const kind = this.#below(2) === 0 ? "result" : "wait";
    const digest = `digest-${this.#below(2)}`;
    const delivery = this.#world.delivery(child, parent, { kind, digest });
    const name = this.#pick(this.#names) ?? parent;
    const signals = [this.#world.signal(name, { ifEnded: "record" })];
    return this.#world.commit({ deliver: [delivery], signals });
  }

  async #loseWorker(): Promise<null> {
    const world = this.#world;
    const lost = id.incarnation(`w${this.#workers}`);
    if (this.#below(2) === 0) await world.store.deregisterWorker(world.tenant, lost);
    else {
      world.clock.advance(1_001);
      await world.store.reapWorkers(world.tenant, 1_000);
    }
    this.#workers += 1;
    return null;
  }
}

function checkRow(row: RunRow, before: RunRow | undefined): void {
  const running = row.state === "running";
  const ended = row.state === "ended";
  assert.equal(row.claimedBy !== null, running, "a Run is claimed if and only if it runs");
  assert.equal(row.endedAt !== null, ended);
  if (running || ended) assert.equal(row.dueAt, null);
  if (row.state === "ready") assert.notEqual(row.dueAt, null, "what is ready has its time");
  if (row.state !== "created" && !ended) assert.ok(row.lane, "only a queued Run is without the lane");
  if (ended) assert.ok(!row.lane);
  assert.ok(row.controlSeq <= row.signalSeq);
  if (before === undefined) return;
  assert.ok(row.epoch >= before.epoch, "an epoch never goes back");
  assert.ok(row.version >= before.version, "a version never goes back");
  assert.ok(row.signalSeq >= before.signalSeq);
  if (before.state === "ended") {
    assert.deepEqual(row, { ...before, signalSeq: row.signalSeq, controlSeq: row.controlSeq });
  }
}

async function checkAll(world: World, before: Map<string, RunRow>): Promise<void> {
  const rows = await world.store.listRuns(world.tenant, { order: "oldest", limit: 1_000 });
  const lanes = new Map<string, number>();
  const live = new Set<string>();
  for (const row of rows) {
    checkRow(row, before.get(row.runId));
    before.set(row.runId, row);
    if (row.state !== "ended") live.add(row.threadId);
    if (row.lane) lanes.set(row.threadId, (lanes.get(row.threadId) ?? 0) + 1);
  }
  for (const thread of live)
    assert.equal(lanes.get(thread), 1, "a live thread has one lane, and one holder of it");
  const counts = Object.entries(await world.store.countRuns(world.tenant));
  for (const [state, count] of counts) {
    assert.equal(count, rows.filter((row) => row.state === state).length, `count of ${state}`);
  }
  const due = rows.filter((row) => row.lane && row.dueAt !== null).map((row) => row.dueAt ?? 0);
  assert.equal(await world.store.nextDueAt(world.tenant), due.length === 0 ? null : Math.min(...due));
}

async function checkLog(world: World): Promise<void> {
  const log = await world.log();
  const versions = new Map<string, number>();
  const signals = new Map<string, number>();
  const creations = new Set<string>();
  let last = 0;
  for (const row of log) {
    assert.ok(row.seq > last, "log numbers rise strictly");
    last = row.seq;
    if (row.source === "lane") {
      assert.equal(row.version, (versions.get(row.threadId) ?? 0) + 1, "a thread's versions have no gap");
      versions.set(row.threadId, row.version);
    } else if (row.signal === 0) {
      assert.ok(!creations.has(row.runId), "a Run is created once");
      creations.add(row.runId);
    } else {
      assert.ok(row.signal > (signals.get(row.runId) ?? 0), "a Run's signals are numbered upwards");
      signals.set(row.runId, row.signal);
    }
    assert.ok(creations.has(row.runId), "nothing comes before the creation");
  }
}

const SEEDS = [1, 2, 3, 5, 8, 13, 21, 34];

/** Whatever is done to a store, in whatever order: these stay true after every step. */
export const randomWalkCases: readonly StoreContractCase[] = SEEDS.map((seed) =>
  storeCase(`L4 L3 invariants hold on a random walk, seed ${seed}`, async (world) => {
    const walk = new Walk(world, seed);
    const rows = new Map<string, RunRow>();
    const kinds = new Set<string>();
    for (let step = 0; step < 250; step += 1) {
      const outcome = await walk.step();
      if (outcome !== null) kinds.add(outcome.kind);
      await checkAll(world, rows);
    }
    await checkLog(world);
    assert.ok(kinds.has("committed") && kinds.has("stale"), "the walk met both");
  }),
);
