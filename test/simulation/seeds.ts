import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryStore } from "../../src/stores/memory/index.ts";
import { createSqliteStore } from "../../src/stores/sqlite/index.ts";
import { type Played, type SimulationOptions, simulate } from "./simulation.ts";

export type StoreKind = "memory" | "sqlite";

/** Opens stores of a kind; `close` removes what they have left behind. */
export async function storesOf(
  kind: StoreKind,
): Promise<{ readonly open: SimulationOptions["open"]; close(): Promise<void> }> {
  if (kind === "memory") {
    return { open: async (clock) => createMemoryStore({ clock }), close: async () => undefined };
  }
  const folder = await mkdtemp(join(tmpdir(), "errand-simulation-"));
  let files = 0;
  return {
    open: (clock) =>
      createSqliteStore(join(folder, `${++files}.db`), { clock, durability: "normal", pollMs: 0 }),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Seeds that break a law are enough to look at when there are so many. */
const MOST_FAILURES = 3;

/** Plays seeds one after the other. Returns what those say that break a law, and how to play them again. */
export async function playSeeds(kind: StoreKind, from: number, to: number): Promise<string[]> {
  const stores = await storesOf(kind);
  const failures: string[] = [];
  try {
    for (let seed = from; seed <= to && failures.length < MOST_FAILURES; seed++) {
      const played = await simulate(seed, stores);
      if (played.problems.length > 0) failures.push(failure(kind, played));
    }
  } finally {
    await stores.close();
  }
  return failures;
}

export function failure(kind: StoreKind, played: Played): string {
  const problems = played.problems.slice(0, 10).map((problem) => `  ${problem}`);
  const store = kind === "memory" ? "" : ` --store ${kind}`;
  return `seed ${played.seed} breaks ${played.problems.length} laws:\n${problems.join("\n")}\nPlay it again: npm run simulate -- --seed ${played.seed}${store} --log`;
}
