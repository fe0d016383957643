import { createErrand, functionAgent } from "../src/surfaces/library/index.ts";
import { mainThreadCpuMicros } from "./main-thread-cpu.ts";
import type { MeasuredStore } from "./measured-store.ts";

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
  options: { readonly parents: number; readonly delegationsPerParent: number; readonly seconds: number },
): Promise<Load> {
  const { parents, delegationsPerParent, seconds } = options;
  const childReturned = new Map<number, number>();
  const resumes: number[] = [];
  const number = { inputSchema: { type: "number" }, outputSchema: { type: "number" } } as const;
  const child = functionAgent({
    ...number,
    name: "child",
    version: "1",
    run: async (_ctx, token: number) => {
      childReturned.set(token, performance.now());
      return token;
    },
  });
  let token = 0;
  const parent = functionAgent({
    ...number,
    name: "parent",
    version: "1",
    roster: [{ agent: child }],
    run: async (ctx, first: number) => {
      for (let at = 0; at < delegationsPerParent; at++) {
        const sent = first + at;
        await ctx.run(child, sent);
        const returned = childReturned.get(sent);
        if (returned !== undefined) resumes.push(performance.now() - returned);
        childReturned.delete(sent);
      }
      return first;
    },
  });
  const errand = await createErrand({
    store: measured.store,
    agents: [parent],
    worker: { concurrency: parents, warmRuns: parents * 2 },
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
  done = 0;
  resumes.length = 0;
  const before = { ...measured.count };
  const cpu = mainThreadCpuMicros();
  const start = performance.now();
  await run(seconds * 1_000);
  const elapsed = (performance.now() - start) / 1_000;
  const cpuMicros = mainThreadCpuMicros() - cpu;
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

function percentile(values: number[], at: number): number {
  const sorted = values.sort((left, right) => left - right);
  return Math.round((sorted[Math.floor(sorted.length * at)] ?? 0) * 100) / 100;
}
