import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { MeasuredStore } from "./measured-store.ts";
import type { WorkerOrder } from "./postgres-worker.ts";

type Count = MeasuredStore["count"];

/** Worker processes of the bench. */
export interface BenchWorkers {
  /** What has gone through all of their stores. */
  count(): Promise<Count>;
  stop(): Promise<void>;
}

export async function startBenchWorkers(howMany: number, order: WorkerOrder): Promise<BenchWorkers> {
  const file = fileURLToPath(new URL("postgres-worker.ts", import.meta.url));
  const start = async (): Promise<ChildProcess> => {
    const child = fork(file, [JSON.stringify(order)], { execArgv: ["--import", "jiti/register"] });
    await once(child, "message");
    return child;
  };
  const children = await Promise.all(Array.from({ length: howMany }, start));
  return {
    async count() {
      const total = { commits: 0, rows: 0, bytes: 0, statements: 0 };
      for (const child of children) {
        const answer = once(child, "message");
        child.send("count");
        const [count] = (await answer) as [Count];
        for (const key of Object.keys(total) as (keyof Count)[]) total[key] += count[key];
      }
      return total;
    },
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          const gone = once(child, "exit");
          child.send("stop");
          await gone;
        }),
      );
    },
  };
}
