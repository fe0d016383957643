import { setTimeout as pause } from "node:timers/promises";
import { createErrand } from "errand";
import { createPostgresStore } from "errand/postgres";
import type { RunId } from "../../src/domain/id.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { type OwnServer, newDatabase, onServer, startOwnPostgres } from "../support/postgres.ts";
import { Fleet } from "./fleet.ts";
import type { FleetVerdict } from "./fleet-verdict.ts";

export interface FleetSoakOptions {
  readonly trees: number;
  readonly workers: number;
  readonly seed: number;
  readonly onProgress?: (so: { readonly finished: number; readonly disturbances: Disturbances }) => void;
}

export interface FleetSoakReport extends FleetVerdict {
  readonly disturbances: Disturbances;
  readonly server: string;
  /** Whether the server was killed for good halfway and its synchronous standby promoted. */
  readonly promoted: boolean;
  /** Leases whose loss a worker that went on noticed. */
  readonly lost: number;
  /** Tool calls that were stopped because the lease was lost. */
  readonly aborted: number;
}

type Disturbances = Readonly<Record<keyof typeof DISTURBANCES, number>>;

/** Short, so that a killed worker is soon taken over; long enough for a busy machine to renew it. */
const LEASE_MS = 1_500;
const BETWEEN_MS = [200, 1_200] as const;
const PROGRESS_MS = 1_000;

type Disturbance = (fleet: Fleet, server: OwnServer, random: SeededRandom) => Promise<void>;

/** What is done to the fleet, and how often beside the others. */
const DISTURBANCES = {
  /** `kill -9`, and another process in its place at once. */
  kill: [
    6,
    async (fleet, _server, random) => {
      const member = random.pick(fleet.members);
      await member.kill();
      await member.start();
    },
  ],
  /** SIGSTOP past the lease, then SIGCONT: a zombie. */
  freeze: [3, (fleet, _server, random) => fleet.freeze(random.pick(fleet.members))],
  /** A worker's connections break. */
  cut: [6, async (fleet, _server, random) => random.pick(fleet.members).proxy.cut()],
  /** What is sent over a worker's connections is lost without a word. */
  swallow: [2, async (fleet, _server, random) => random.pick(fleet.members).proxy.swallow()],
  /** A slow network for a while, for one worker longer than its lease. */
  delay: [
    3,
    async (fleet, _server, random) => {
      const { proxy } = random.pick(fleet.members);
      proxy.delay(random.pick([5, 50, 400, 1_000]));
      await pause(random.int(500, 2_500));
      proxy.delay(0);
    },
  ],
  /** The server goes down as `immediate` does and comes back. */
  restart: [1, (_fleet, server) => server.restart()],
  /** The server answers, and refuses every write. */
  refuse: [
    1,
    async (_fleet, server) => {
      await readOnly(server, true);
      await pause(1_500);
      await readOnly(server, false);
    },
  ],
} as const satisfies Record<string, readonly [number, Disturbance]>;

const NAMES = Object.keys(DISTURBANCES) as (keyof typeof DISTURBANCES)[];

/** Carries many trees on a fleet that is disturbed all the time, and holds what is left against the laws. */
export async function fleetSoak(options: FleetSoakOptions): Promise<FleetSoakReport> {
  const { trees, workers, seed, onProgress } = options;
  const random = new SeededRandom(seed);
  let server = await startOwnPostgres({ fsync: "on" }, "pg_basebackup");
  const servers = [server];
  const counts = Object.fromEntries(NAMES.map((name) => [name, 0])) as Record<
    keyof typeof DISTURBANCES,
    number
  >;
  try {
    const url = await newDatabase(server);
    let standby = await server.standby();
    if (standby !== null) servers.push(standby);
    const promoted = standby !== null;
    await using fleet = await Fleet.open({ url, workers, leaseMs: LEASE_MS });
    const tell = (): void => onProgress?.({ finished: fleet.finished, disturbances: counts });
    const progress = setInterval(tell, PROGRESS_MS);
    try {
      const stop = new AbortController();
      const done = fleet.run(trees, random.fork("trees")).finally(() => stop.abort());
      // Whoever awaits `done` hears of its failure.
      done.catch(() => undefined);
      const often = NAMES.flatMap((name) => Array.from({ length: DISTURBANCES[name][0] }, () => name));
      const round: (keyof typeof DISTURBANCES)[] = [];
      while (!stop.signal.aborted) {
        await pause(random.int(...BETWEEN_MS), undefined, { signal: stop.signal }).catch(() => undefined);
        if (stop.signal.aborted) break;
        if (standby !== null && fleet.finished > trees / 2) {
          const seen = await readReplica(behind(url, standby.url));
          fleet.problems.push(...seen);
          await server.kill();
          await onServer(standby.url, "SELECT pg_promote()");
          fleet.moveTo(standby.url);
          [server, standby] = [standby, null];
        }
        // Each round does everything, in another order.
        if (round.length === 0) round.push(...often);
        const [name = "cut"] = round.splice(random.int(0, round.length - 1), 1);
        await DISTURBANCES[name][1](fleet, server, random);
        counts[name] += 1;
      }
      await done;
    } finally {
      clearInterval(progress);
    }
    tell();
    const [version] = await onServer(server.url, "SHOW server_version");
    const verdict = await fleet.judge();
    const sum = (of: (member: (typeof fleet.members)[number]) => number): number =>
      fleet.members.reduce((total, member) => total + of(member), 0);
    return {
      ...verdict,
      disturbances: counts,
      promoted,
      server: (version as { readonly server_version: string }).server_version,
      lost: sum(({ lost }) => lost.size),
      aborted: sum(({ aborted }) => aborted.size),
    };
  } finally {
    await Promise.all(servers.map((one) => one.stop()));
  }
}

/** The same database on another server. */
function behind(url: string, server: string): string {
  const there = new URL(url);
  there.port = new URL(server).port;
  return there.href;
}

/** A console on a standby, while everybody is at work on its primary. */
async function readReplica(url: string): Promise<readonly string[]> {
  const store = createPostgresStore({ connectionString: url, migrate: false });
  await using errand = await createErrand({ store, agents: [], worker: false });
  const [last] = await errand.list({ rootsOnly: true, limit: 1 });
  if (last === undefined) return ["the standby has no tree"];
  await errand.tree(last.runId);
  await errand.store.readLog(errand.tenant, { rootRunId: last.rootRunId as RunId }, 0, 100);
  const { problems } = await errand.verify();
  return problems.map((problem) => `on the standby: ${JSON.stringify(problem)}`);
}

async function readOnly(server: OwnServer, on: boolean): Promise<void> {
  const url = new URL(server.url);
  // This one session may write, or the setting could not be taken back.
  url.searchParams.set("options", "-c default_transaction_read_only=off");
  const setting = "ALTER SYSTEM SET default_transaction_read_only = ";
  await onServer(url.href, `${setting}${on ? "on" : "off"}`, "SELECT pg_reload_conf()");
}
