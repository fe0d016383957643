import { expect, test } from "vitest";
import { playSeeds } from "./seeds.ts";

const LONG = { timeout: 600_000 };

test("L1–L18, L33: seeds 1,001 to 2,000 of the simulation hold on the memory store", LONG, async () => {
  expect(await playSeeds("memory", 1_001, 2_000)).toEqual([]);
});
