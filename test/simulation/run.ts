import { parseArgs } from "node:util";
import { type StoreKind, failure, storesOf } from "./seeds.ts";
import { simulate } from "./simulation.ts";

const USAGE = `npm run simulate -- [--seeds N] [--from S] [--seed S] [--store memory|sqlite] [--log]
  --seeds N   how many seeds to play; default 1000
  --from S    the first of them; default 1
  --seed S    this one only
  --log       print every fault, every commit and every event
`;

/** Plays seeds and prints what they break. Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "1" },
      seed: { type: "string" },
      store: { type: "string", default: "memory" },
      log: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const kind = values.store as StoreKind;
  const first = Number(values.seed ?? values.from);
  const count = values.seed === undefined ? Number(values.seeds) : 1;
  const sound = [first, count].every((one) => Number.isSafeInteger(one) && one >= 0);
  if (values.help || !sound || (kind !== "memory" && kind !== "sqlite")) {
    process.stdout.write(USAGE);
    return values.help ? 0 : 2;
  }
  const stores = await storesOf(kind);
  const log = values.log ? (line: string): void => void process.stdout.write(`${line}\n`) : undefined;
  const began = performance.now();
  let failures = 0;
  let runs = 0;
  let virtualMs = 0;
  try {
    for (let seed = first; seed < first + count; seed++) {
      const played = await simulate(seed, { open: stores.open, log });
      runs += played.runs;
      virtualMs += played.virtualMs;
      if (played.problems.length === 0) continue;
      failures += 1;
      process.stdout.write(`${failure(kind, played)}\n`);
    }
  } finally {
    await stores.close();
  }
  const seconds = (performance.now() - began) / 1_000;
  const hours = (virtualMs / 3_600_000).toFixed(1);
  process.stdout.write(
    `${count} seeds on ${kind}: ${failures} failed. ${runs} runs, ${hours} hours of virtual time in ${seconds.toFixed(1)} s\n`,
  );
  return failures > 0 ? 1 : 0;
}
