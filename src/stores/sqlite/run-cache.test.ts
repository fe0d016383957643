import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Commit } from "../../runtime/ports/store.ts";
import { HandClock } from "../../testing/hand-clock.ts";
import { type Held, id, World } from "../../testing/store-contract/world.ts";
import { createSqliteStore } from "./index.ts";
import { RunCache } from "./run-cache.ts";
import type { RunState } from "./run-state.ts";

let folder = "";
let here: World;
let there: World;

/** Two connections to one file, as two processes have them. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "errand-cache-"));
  const clock = new HandClock();
  const open = () => createSqliteStore(join(folder, "errand.db"), { clock });
  here = new World(await open(), clock);
  there = here.on(await open());
});

afterEach(async () => {
  await here.store.close();
  await there.store.close();
  rmSync(folder, { recursive: true });
});

const park = (signalSeqSeen: number) =>
  ({ kind: "park", state: "waiting", dueInMs: null, signalSeqSeen }) as const;

describe("rows remembered from the last transaction", () => {
  test("give way to what another connection has committed", async () => {
    const held: Held = await here.running("p");
    for (let signal = 1; signal <= 3; signal++) {
      await here.step(held);
      await there.committed({ signals: [there.signal("p")] });
      const receipt = await here.step(held, park(signal - 1));
      expect(receipt).toMatchObject({ parked: false, signalSeq: signal });
    }
    expect((await here.step(held, park(3))).parked).toBe(true);
    await there.committed({ signals: [there.signal("p")] });
    expect(await here.row("p")).toMatchObject({ state: "ready", signalSeq: 4 });
  });

  test("give way to another connection's reaping, so the old epoch is refused", async () => {
    const held = await here.running("p");
    await here.step(held);
    here.clock.advance(60_000);
    expect(await there.store.reapWorkers(there.tenant, 1_000)).toEqual([held.incarnation]);
    expect(await here.commit({ lane: here.lane(held) })).toEqual({ kind: "stale", reason: "epoch" });
  });

  test("give way to this connection's own claims, releases and reaping", async () => {
    const first = await here.running("p");
    await here.step(first);
    await here.store.release(here.tenant, first.incarnation, [{ runId: first.runId, epoch: first.epoch }]);
    expect(await here.commit({ lane: here.lane(first) })).toEqual({ kind: "stale", reason: "epoch" });
    const second = await here.take("p");
    expect(second.epoch).toBe(first.epoch + 2);
    await here.step(second);
    await here.store.deregisterWorker(here.tenant, second.incarnation);
    expect(await here.commit({ lane: here.lane(second) })).toEqual({ kind: "stale", reason: "epoch" });
    expect((await here.take("p", "w2")).epoch).toBe(second.epoch + 2);
  });

  test("are void once their transaction was rolled back", async () => {
    const held = await here.running("p");
    const broken = here.draft({
      lane: here.lane(held, { kind: "hold" }, { body: { not: "text" } as unknown as string }),
    });
    const after: Commit = here.draft({ signals: [here.signal("p")] });
    const outcomes = await Promise.allSettled([here.store.commit(broken), here.store.commit(after)]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "fulfilled"]);
    expect(await here.row("p")).toMatchObject({ version: 0, signalSeq: 1 });
    expect((await here.step(held)).version).toBe(1);
  });

  test("are bounded", () => {
    const cache = new RunCache();
    const row = (at: number) => ({ runId: id.run(`n${at}`) }) as RunState;
    for (let at = 0; at < 10_000; at++) cache.put(here.tenant, row(at));
    const kept = Array.from({ length: 10_000 }, (_, at) => cache.get(here.tenant, id.run(`n${at}`)));
    expect(kept.filter((found) => found !== undefined).length).toBe(4096);
  });
});
