import { expect, test } from "vitest";
import { playSeeds, storesOf } from "./seeds.ts";
import { simulate } from "./simulation.ts";

const LONG = { timeout: 600_000 };

test("L1–L18, L33: seeds 1 to 1,000 of the simulation hold on the memory store", LONG, async () => {
  expect(await playSeeds("memory", 1, 1_000)).toEqual([]);
});

test("the same seed plays the same twice", async () => {
  const stores = await storesOf("memory");
  const traces = new Set<string>();
  for (const seed of [7, 7, 8, 8, 9, 9]) traces.add((await simulate(seed, stores)).trace);
  expect(traces.size).toBe(3);
});
