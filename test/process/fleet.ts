import { type Errand, ErrandError, createErrand } from "errand";
import { createPostgresStore } from "errand/postgres";
import type { SeededRandom } from "../../src/testing/seeded-random.ts";
import type { WorkerRow } from "../../src/runtime/ports/store.ts";
import { type TcpProxy, startTcpProxy } from "../support/tcp-proxy.ts";
import { type EffectCounter, startEffectCounter } from "./effect-counter.ts";
import { fleetAgents } from "./fleet-agents.ts";
import { FleetMember } from "./fleet-member.ts";
import { type Plan, planTree } from "./fleet-plan.ts";
import { type FleetTree, type FleetVerdict, judgeFleet } from "./fleet-verdict.ts";

/** Trees under way at once, for each worker. */
const TREES_A_WORKER = 12;
/** A tree that takes longer hangs: a finding, not something to wait for. */
const PATIENCE_MS = 180_000;
const LOOK_AGAIN_MS = 50;

export interface FleetOptions {
  /** Of an empty database. */
  readonly url: string;
  readonly workers: number;
  readonly leaseMs: number;
}

/**
 * Worker processes on one PostgreSQL database, each behind a proxy of its own, the outside process that counts their
 * effects, and whoever starts trees and waits for them, here.
 */
export class Fleet implements AsyncDisposable {
  readonly members: readonly FleetMember[];
  readonly counter: EffectCounter;
  readonly #options: FleetOptions;
  readonly #errand: Errand;
  /** Between this process and the database. */
  readonly #door: TcpProxy;
  readonly #trees: FleetTree[] = [];
  finished = 0;
  /** What was found wrong on the way. */
  readonly problems: string[] = [];

  private constructor(
    options: FleetOptions,
    errand: Errand,
    counter: EffectCounter,
    members: readonly FleetMember[],
    door: TcpProxy,
  ) {
    this.#door = door;
    this.#options = options;
    this.#errand = errand;
    this.counter = counter;
    this.members = members;
  }

  static async open(options: FleetOptions): Promise<Fleet> {
    const { url, leaseMs } = options;
    const counter = await startEffectCounter(30);
    const door = await startTcpProxy(Number(new URL(url).port));
    const errand = await createErrand({
      store: createPostgresStore({ connectionString: behind(door, url) }),
      agents: [fleetAgents(counter.url)],
      worker: false,
    });
    const members: FleetMember[] = [];
    for (let at = 0; at < options.workers; at++) {
      const proxy: TcpProxy = await startTcpProxy(Number(new URL(url).port));
      const order = { url: behind(proxy, url), name: `worker-${at}`, counter: counter.url, leaseMs };
      members.push(new FleetMember(order, proxy));
    }
    const fleet = new Fleet(options, errand, counter, members, door);
    await Promise.all(members.map((member) => member.start()));
    return fleet;
  }

  get started(): number {
    return this.#trees.length;
  }

  /** Starts `count` trees, so many at a time, and waits until each has ended. */
  async run(count: number, random: SeededRandom): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) {
        const number = next++;
        await this.#tree(`tree-${number}`, planTree(random.fork(`tree-${number}`)));
      }
    };
    await Promise.all(Array.from({ length: TREES_A_WORKER * this.#options.workers }, lane));
  }

  async #tree(key: string, plan: Plan): Promise<void> {
    const run = await persist(() => this.#errand.start("fleet-0", plan, { key }));
    try {
      const end = await persist(() => this.#errand.end(run.runId, { timeoutMs: PATIENCE_MS }));
      this.#trees.push({ key, plan, runId: run.runId, end });
    } catch (error) {
      if (!ErrandError.is(error) || error.code !== "WAIT_TIMEOUT") throw error;
      this.problems.push(`${key}: ${error.message}`);
    }
    this.finished += 1;
  }

  /** A worker's incarnations, the last one first. */
  async incarnations(name: string): Promise<readonly WorkerRow[]> {
    const all = await persist(() => this.#errand.workers());
    return all.filter((row) => row.name === name).toSorted((a, b) => b.startedAt - a.startedAt);
  }

  /** How many Runs the store says that a member's process holds under the incarnation that it began as. */
  async held(member: FleetMember): Promise<number> {
    const rows = await persist(() =>
      this.#errand.store.listRuns(this.#errand.tenant, { states: ["running"], limit: 500 }),
    );
    return rows.filter((row) => row.claimedBy === member.incarnation).length;
  }

  /** Stops a member until its lease is lost and others have what it held, then lets it go on. */
  async freeze(member: FleetMember): Promise<void> {
    const held = member.incarnation;
    member.signal("SIGSTOP");
    try {
      await until(async () => {
        const rows = await this.incarnations(member.name);
        return rows.find((row) => row.incarnation === held)?.dead !== false;
      });
    } finally {
      member.signal("SIGCONT");
    }
  }

  /** Everybody finds another server from now on. */
  moveTo(url: string): void {
    const port = Number(new URL(url).port);
    for (const proxy of [this.#door, ...this.members.map((member) => member.proxy)]) {
      proxy.aim(port);
      proxy.cut();
    }
  }

  /** Stops the workers, who must all go in peace, and says what all this has left behind. */
  async judge(): Promise<FleetVerdict> {
    // The network is whole again: connections that lost what was sent are gone.
    for (const { proxy } of this.members) proxy.cut();
    await Promise.all(this.members.map((member) => member.stop()));
    const { problems, figures } = await judgeFleet(this.#errand, this.#trees, await this.counter.effects());
    const unexpected = this.members.flatMap((member) => member.problems);
    return { figures, problems: [...this.problems, ...unexpected, ...problems] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => member.dispose()));
    await this.#errand.close();
    await this.#door.stop();
    await this.counter.stop();
  }
}

function behind(proxy: TcpProxy, url: string): string {
  const through = new URL(url);
  through.port = String(proxy.port);
  return through.href;
}

/** Asks again while the store cannot be reached, until it answers. */
export async function persist<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!ErrandError.is(error) || !error.code.startsWith("STORE_")) throw error;
    }
    await again();
  }
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${String(holds)} did not come true.`);
    await again();
  }
}

function again(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
}
