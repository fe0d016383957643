// The unit is one trivial delegation: from the commit that delegates to the one that publishes its result.
// Prints, for each store and number of concurrent parents, the rate beside the raw durable one-row commit rate of the
// same store in the same run. Run: npm run bench [-- --json] [--store memory|sqlite|postgres] [--parents 1,16,64]
// [--seconds N] [--workers 1,2,4] (processes, of PostgreSQL alone). PostgreSQL is a server of the bench's own that syncs
// every commit, or the one that ERRAND_BENCH_POSTGRES_URL names. [--quick] leaves out the cases with 100,000 finished runs, a 2,000-message history and 10,000 parked parents.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { coldLoad } from "./cold-load.ts";
import { parkedParents } from "./parked-parents.ts";
import { idleClaim, postgresDelegations } from "./postgres-delegations.ts";
import { benchServer } from "./postgres-figures.ts";
import { type Figures, print } from "./figures.ts";
import { fsyncMicros, rawCommitsPerSecond } from "./raw-commits.ts";
import { finishedRuns, openMeasured } from "./measured-store.ts";
import { trivialDelegations } from "./trivial-delegations.ts";

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    store: { type: "string", default: "memory,sqlite" },
    parents: { type: "string", default: "1,16,64" },
    workers: { type: "string", default: "1" },
    seconds: { type: "string", default: "4" },
    "per-parent": { type: "string", default: "20" },
    finished: { type: "string", default: "100000" },
    messages: { type: "string", default: "2000" },
    parked: { type: "string", default: "10000" },
  },
});

const seconds = Number(values.seconds);
const perParent = Number(values["per-parent"]);
const folder = mkdtempSync(join(tmpdir(), "errand-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const show = (figures: Figures): void => print(figures, values.json);
let files = 0;
const newFile = (): string => join(folder, `bench-${files++}.db`);

for (const kind of values.store.split(",")) {
  if (kind === "postgres") {
    await measurePostgres();
    continue;
  }
  if (kind !== "memory" && kind !== "sqlite")
    throw new Error(`--store knows memory, sqlite and postgres, not ${kind}`);
  for (const parents of values.parents.split(",").map(Number)) {
    show(await measure(kind, parents, perParent, 0));
  }
  show(await measure(kind, 16, 1, 0));
  if (values.quick) continue;
  show(await measure(kind, 16, perParent, Number(values.finished)));
  show(await coldLoad(kind, newFile(), Number(values.messages)));
  show(await parkedParents(kind, newFile(), Number(values.parked)));
}

async function measurePostgres(): Promise<void> {
  const server = await benchServer();
  try {
    const load = { delegationsPerParent: perParent, seconds, finished: 0 };
    for (const workers of values.workers.split(",").map(Number)) {
      for (const parents of values.parents.split(",").map(Number)) {
        show(await postgresDelegations(server, { ...load, parents, workers }));
      }
    }
    show(await postgresDelegations(server, { ...load, parents: 16, workers: 1, delegationsPerParent: 1 }));
    show(await idleClaim(server, true, 100));
    show(await idleClaim(server, false, 20));
    if (values.quick) return;
    const finished = Number(values.finished);
    show(await postgresDelegations(server, { ...load, parents: 16, workers: 1, finished }));
  } finally {
    await server.stop();
  }
}

async function measure(
  kind: "memory" | "sqlite",
  parents: number,
  delegationsPerParent: number,
  finished: number,
): Promise<Figures> {
  const file = newFile();
  const rawBefore = kind === "sqlite" ? await rawCommitsPerSecond(`${file}.raw`) : null;
  const measured = await openMeasured(kind, file);
  if (finished > 0) await finishedRuns(measured.store, finished);
  const load = await trivialDelegations(measured, { parents, delegationsPerParent, seconds });
  const rawAfter = kind === "sqlite" ? await rawCommitsPerSecond(`${file}.raw`) : null;
  const raw = rawBefore === null || rawAfter === null ? null : (rawBefore + rawAfter) / 2;
  return {
    case: finished > 0 ? `after ${finished} finished runs` : "trivial delegations",
    store: kind,
    parents,
    workers: 1,
    delegationsPerParent,
    ...load,
    rawCommitsPerSecond: raw === null ? null : Math.round(raw),
    ratio: raw === null ? null : round(load.delegationsPerSecond / raw),
    fsyncMicros: kind === "sqlite" ? fsyncMicros(`${file}.fsync`) : null,
  };
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
