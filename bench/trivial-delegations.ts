import { createErrand } from "../src/surfaces/library/index.ts";
import { mainThreadCpuMicros } from "./main-thread-cpu.ts";
import type { MeasuredStore } from "./measured-store.ts";
import { trivialAgents } from "./trivial-agents.ts";

export interface Load {
  readonly delegationsPerSecond: number;
  readonly cpuMicrosPerDelegation: number;
  readonly transitionsPerDelegation: number;
  readonly rowsPerDelegation: number;
  readonly bytesPerDelegation: number;
  readonly statementsPerDelegation: number;
  readonly resumeP50Ms: number;
  readonly resumeP99Ms: number;
}

/** Keeps `parents` root Runs under way, each delegating one after the other to a child that answers at once. */
export async function trivialDelegations(
  measured: MeasuredStore,
  options: {
    readonly parents: number;
    readonly delegationsPerParent: number;
    readonly seconds: number;
    /** Whether the worker is in this process. Default true. */
    readonly carries?: boolean;
    /** Called when the load is warm, and when it has ended. */
    readonly onBegin?: () => Promise<void>;
    readonly onEnd?: (delegations: number) => Promise<void>;
  },
): Promise<Load> {
  const { parents, delegationsPerParent, seconds } = options;
  const childReturned = new Map<number, number>();
  const resumes: number[] = [];
  const parent = trivialAgents(delegationsPerParent, {
    returned: (token) => childReturned.set(token, performance.now()),
    resumed: (token) => {
      const returned = childReturned.get(token);
      if (returned !== undefined) resumes.push(performance.now() - returned);
      childReturned.delete(token);
    },
  });
  let token = 0;
  const errand = await createErrand({
    store: measured.store,
    agents: [parent],
    worker: (options.carries ?? true) && { concurrency: parents, warmRuns: parents * 2 },
  });
  let done = 0;
  let stop = false;
  const keepGoing = async (): Promise<void> => {
    while (!stop) {
      const first = token;
      token += delegationsPerParent;
      await errand.run(parent, first);
      done += delegationsPerParent;
    }
  };
  const run = async (forMs: number): Promise<void> => {
    stop = false;
    const timer = setTimeout(() => (stop = true), forMs);
    await Promise.all(Array.from({ length: parents }, keepGoing));
    clearTimeout(timer);
  };
  await run(500); // warm up
  await options.onBegin?.();
  done = 0;
  resumes.length = 0;
  const before = { ...measured.count };
  const cpu = mainThreadCpuMicros();
  const start = performance.now();
  await run(seconds * 1_000);
  const elapsed = (performance.now() - start) / 1_000;
  const cpuMicros = mainThreadCpuMicros() - cpu;
  await options.onEnd?.(done);
  const per = (key: keyof typeof before): number =>
    Math.round(((measured.count[key] - before[key]) / done) * 100) / 100;
  const figures = {
    delegationsPerSecond: Math.round(done / elapsed),
    cpuMicrosPerDelegation: Math.round(cpuMicros / done),
    transitionsPerDelegation: per("commits"),
    rowsPerDelegation: per("rows"),
    bytesPerDelegation: Math.round(per("bytes")),
    statementsPerDelegation: per("statements"),
    resumeP50Ms: percentile(resumes, 0.5),
    resumeP99Ms: percentile(resumes, 0.99),
  };
  await errand.close();
  return figures;
}

export function percentile(values: readonly number[], at: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return Math.round((sorted[Math.floor(sorted.length * at)] ?? 0) * 100) / 100;
}
