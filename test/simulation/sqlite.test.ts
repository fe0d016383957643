import { expect, test } from "vitest";
import { playSeeds, storesOf } from "./seeds.ts";
import { simulate } from "./simulation.ts";

const LONG = { timeout: 600_000 };

test("L1–L18, L33: seeds 1 to 50 of the simulation hold on SQLite", LONG, async () => {
  expect(await playSeeds("sqlite", 1, 50)).toEqual([]);
});

test("the same seed plays the same twice on SQLite", async () => {
  const stores = await storesOf("sqlite");
  try {
    const first = await simulate(21, stores);
    const second = await simulate(21, stores);
    expect(second.trace).toBe(first.trace);
  } finally {
    await stores.close();
  }
});
