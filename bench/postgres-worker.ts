// A worker process of the PostgreSQL bench: `node --import jiti/register bench/postgres-worker.ts '{"url", …}'`. Says
// `ready`, answers each `count` with what has gone through its store, and ends with its parent.
import { createErrand } from "../src/surfaces/library/index.ts";
import { openMeasuredPostgres } from "./measured-postgres.ts";
import { trivialAgents } from "./trivial-agents.ts";

export interface WorkerOrder {
  readonly url: string;
  readonly listen: boolean;
  readonly concurrency: number;
  readonly delegationsPerParent: number;
}

const { url, listen, concurrency, delegationsPerParent } = JSON.parse(process.argv[2] ?? "") as WorkerOrder;
const measured = await openMeasuredPostgres(url, listen && url);
const errand = await createErrand({
  store: measured.store,
  agents: [trivialAgents(delegationsPerParent)],
  worker: { concurrency, warmRuns: concurrency * 2 },
});
process.on("message", (message) => {
  if (message === "count") process.send?.(measured.count);
  else void errand.close().then(() => process.exit(0));
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
