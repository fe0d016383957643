import { createErrand, functionAgent } from "../src/surfaces/library/index.ts";
import type { Figures } from "./figures.ts";
import { mainThreadCpuMicros } from "./main-thread-cpu.ts";
import { openMeasured } from "./measured-store.ts";

/** What Runs cost that wait for an answer: CPU of an idle worker, and memory of its process for each. */
export async function parkedParents(
  kind: "memory" | "sqlite",
  file: string,
  parents: number,
): Promise<Figures> {
  const { store } = await openMeasured(kind, file);
  const asker = functionAgent({
    name: "asker",
    version: "1",
    inputSchema: { type: "number" },
    outputSchema: { type: "number" },
    mayAsk: true,
    run: async (ctx, input) => {
      await ctx.ask({ prompt: "Go on?" });
      return input;
    },
  });
  const parent = functionAgent({
    name: "parent",
    version: "1",
    inputSchema: { type: "number" },
    outputSchema: { type: "number" },
    roster: [{ agent: asker }],
    run: (ctx, input) => ctx.run(asker, input),
  });
  const errand = await createErrand({ store, agents: [parent], worker: { concurrency: 64 } });
  const settle = async (): Promise<number> => {
    for (let at = 0; at < 3; at++) {
      globalThis.gc?.();
      await errand.sleep(50);
    }
    return process.memoryUsage().heapUsed;
  };
  await errand.start(parent, 0);
  await errand.sleep(200);
  const empty = await settle();
  for (let at = 0; at < parents; at += 64) {
    await Promise.all(Array.from({ length: Math.min(64, parents - at) }, () => errand.start(parent, at)));
  }
  for (;;) {
    const counts = await store.countRuns(errand.tenant);
    if (counts.awaiting === 2 * (parents + 1)) break;
    await errand.sleep(50);
  }
  const full = await settle();
  const cpu = mainThreadCpuMicros();
  const start = performance.now();
  await errand.sleep(5_000);
  const busy = (mainThreadCpuMicros() - cpu) / ((performance.now() - start) * 1_000);
  await errand.close();
  return {
    case: `${parents} parked parents`,
    store: kind,
    idleCpuPercentOfACore: Math.round(busy * 10_000) / 100,
    // The memory store itself keeps its rows on the same heap, so its figure is not the worker's alone.
    heapBytesPerParkedParent: kind === "sqlite" ? Math.round((full - empty) / parents) : null,
  };
}
