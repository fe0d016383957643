import { createErrand } from "../src/surfaces/library/index.ts";
import { createPostgresStore } from "../src/stores/postgres/index.ts";
import { type TestServer, newDatabase } from "../test/support/postgres.ts";
import type { Figures } from "./figures.ts";
import { openMeasuredPostgres } from "./measured-postgres.ts";
import { finishedRuns, type MeasuredStore } from "./measured-store.ts";
import {
  type ServerTotals,
  claimTimes,
  countsSettled,
  rawPostgresCommits,
  serverTotals,
} from "./postgres-figures.ts";
import { startBenchWorkers } from "./postgres-workers.ts";
import { trivialAgents } from "./trivial-agents.ts";
import { percentile, trivialDelegations } from "./trivial-delegations.ts";

/** @param workers 1: in this process, which also starts the parents; more: processes of their own beside it. */
export async function postgresDelegations(
  server: TestServer,
  options: {
    readonly parents: number;
    readonly workers: number;
    readonly delegationsPerParent: number;
    readonly seconds: number;
    readonly finished: number;
  },
): Promise<Figures> {
  const { parents, workers, delegationsPerParent, seconds, finished } = options;
  const url = await newDatabase(server);
  const rawBefore = await rawPostgresCommits(url, parents);
  const measured = await openMeasuredPostgres(url, url);
  if (finished > 0) await finishedRuns(measured.store, finished);
  const concurrency = Math.ceil((parents / workers) * 2);
  const others =
    workers === 1
      ? null
      : await startBenchWorkers(workers, { url, listen: true, concurrency, delegationsPerParent });
  const counted = async (): Promise<MeasuredStore["count"]> => {
    const [here, there] = [{ ...measured.count }, await others?.count()];
    if (there !== undefined)
      for (const key of Object.keys(here) as (keyof typeof here)[]) here[key] += there[key];
    return here;
  };
  const totals = async (): Promise<ServerTotals & MeasuredStore["count"]> => {
    const sent = await counted();
    await countsSettled();
    return { ...sent, ...(await serverTotals(url)) };
  };
  let before: Awaited<ReturnType<typeof totals>> | null = null;
  let cost: Readonly<Record<string, number>> = {};
  const load = await trivialDelegations(measured, {
    parents,
    delegationsPerParent,
    seconds,
    carries: others === null,
    onBegin: async () => {
      before = await totals();
    },
    onEnd: async (delegations) => {
      const after = await totals();
      const per = (key: keyof typeof after): number =>
        before === null ? 0 : (after[key] - before[key]) / delegations;
      const times = await claimTimes(url, Math.ceil(delegations / delegationsPerParent));
      cost = {
        transitionsPerDelegation: round(per("commits")),
        roundTripsPerDelegation: round(per("statements")),
        rowsPerDelegation: round(per("rows")),
        walBytesPerDelegation: Math.round(per("walBytes")),
        claimP50Ms: percentile(times, 0.5),
        claimP99Ms: percentile(times, 0.99),
      };
    },
  });
  await others?.stop();
  const raw = (rawBefore + (await rawPostgresCommits(url, parents))) / 2;
  return {
    case: finished > 0 ? `after ${finished} finished runs` : "trivial delegations",
    store: "postgres",
    parents,
    workers,
    delegationsPerParent,
    delegationsPerSecond: load.delegationsPerSecond,
    cpuMicrosPerDelegation: others === null ? load.cpuMicrosPerDelegation : null,
    ...cost,
    bytesPerDelegation: others === null ? load.bytesPerDelegation : null,
    resumeP50Ms: others === null ? load.resumeP50Ms : null,
    resumeP99Ms: others === null ? load.resumeP99Ms : null,
    rawCommitsPerSecond: Math.round(raw),
    ratio: Math.round((load.delegationsPerSecond / raw) * 1_000) / 1_000,
  };
}

/** From the start of a Run in one process to its claim by another one that has nothing else to do. */
export async function idleClaim(server: TestServer, listen: boolean, starts: number): Promise<Figures> {
  const url = await newDatabase(server);
  const agent = trivialAgents(0);
  const store = createPostgresStore({ connectionString: url });
  const errand = await createErrand({ store, agents: [agent], worker: false });
  const workers = await startBenchWorkers(1, { url, listen, concurrency: 16, delegationsPerParent: 0 });
  for (let at = 0; at < starts; at++) await errand.run(agent, at);
  const times = await claimTimes(url, starts);
  await workers.stop();
  await errand.close();
  return {
    case: `start to claim on an idle fleet, ${listen ? "listening" : "polling alone"}`,
    store: "postgres",
    starts,
    claimP50Ms: percentile(times, 0.5),
    claimP99Ms: percentile(times, 0.99),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
