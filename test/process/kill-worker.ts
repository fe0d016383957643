import { createErrand } from "errand";
import { createSqliteStore } from "errand/sqlite";
import { killAgents } from "./kill-agents.ts";

/** What the process that is killed is told, as JSON in its first argument. */
export interface WorkerOrder {
  readonly store: string;
  readonly key: string;
  readonly before: string;
  readonly after: string;
  readonly out: string;
  readonly counter: string;
  readonly paceMs: number;
  readonly leaseMs: number;
}

/** Starts the work, or finds it under way, and carries it to its end. Prints `ready` and `ended <how>`. */
export async function main(args: readonly string[]): Promise<number> {
  const { store, key, leaseMs, paceMs, ...work } = JSON.parse(args[0] ?? "") as WorkerOrder;
  const { before, after, out, counter } = work;
  const agent = killAgents(counter, paceMs);
  await using errand = await createErrand({
    store: createSqliteStore(store),
    agents: [agent],
    worker: { leaseMs, sweepMs: leaseMs / 4, pollMs: 50 },
    // A Run that is killed over and over without getting on is what this is about, not a reason to give up.
    settings: { maxFruitlessClaims: 1_000 },
  });
  const run = await errand.start(agent, { before, after, out }, { key });
  process.stdout.write(`ready ${run.runId}\n`);
  const end = await run.end();
  process.stdout.write(`ended ${end.kind}\n`);
  return 0;
}
