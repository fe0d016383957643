import { expect, test } from "vitest";
import { fn } from "../support/agents.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, LEASE_MS, onEachStore, until } from "../support/world.ts";

onEachStore("K4 slots", (open) => {
  test("K4.1 with three children at a time allowed, twelve short ones in series all start", async () => {
    await using world = await open();
    const leaf = fn("leaf", (_ctx, at) => at);
    const parent = fn(
      "parent",
      async (ctx) => {
        const done = [];
        for (let at = 0; at < 12; at++) done.push(await ctx.run(leaf, at));
        return done;
      },
      { roster: [leaf], limits: { maxParallelChildren: 3 } },
    );
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    expect(await run.result()).toEqual(Array.from({ length: 12 }, (_, at) => at));
  });

  test("K4.1 children that failed, were canceled or vanished give their slot back too", async () => {
    await using world = await open();
    const bad = fn(
      "bad",
      () => {
        throw new Error("no");
      },
      { maxAttempts: 1 },
    );
    const stops = fn("stops", async (ctx) => ctx.now(), { maxSteps: 1 });
    const parent = fn(
      "parent",
      async (ctx) => {
        const codes: string[] = [];
        for (let at = 0; at < 9; at++) {
          const child = [bad, stops, bad][at % 3]!;
          const code = (error: { details: { code: string } }) => error.details.code;
          codes.push(await ctx.run(child, null).then(() => "done", code));
        }
        return codes;
      },
      { roster: [bad, stops], limits: { maxParallelChildren: 1 } },
    );
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    const codes = (await run.result()) as string[];
    expect(new Set(codes)).not.toContain("parallel_limit");
    expect((await run.tree()).children).toHaveLength(9);
  });

  test("K4.1 a worker with one slot carries a tree of any depth: a waiting parent holds no slot", async () => {
    await using world = await open();
    const leaf = fn("leaf", () => 1);
    let top = leaf;
    for (let level = 0; level < 5; level++) {
      const below = top;
      top = fn(`level-${level}`, async (ctx) => ((await ctx.run(below, null)) as number) + 1, {
        roster: [below],
      });
    }
    const errand = await world.errand({ agents: [top], worker: { concurrency: 1 } });
    expect(await (await errand.start(top, null)).result()).toBe(6);
    expect(errand.worker?.active).toBe(0);
  });

  test("K4.2 a worker that is stopped while it reports a failure: the slot is free and the queue drains", async () => {
    await using world = await open();
    const fails = fn(
      "fails",
      () => {
        throw new Error("no");
      },
      { maxAttempts: 1 },
    );
    const works = fn("works", () => "done");
    const reporting = new Gate();
    const first = await world.errand({
      agents: [fails, works],
      worker: { concurrency: 1 },
      hooks: {
        commit: async (commit) => {
          if (commit.lane !== null) await reporting.wait();
        },
      },
    });
    const bad = await first.start(fails, null);
    await until(() => reporting.arrivals === 1);
    const queued = await first.start(works, null);
    first.worker?.kill();
    const second = await world.errand({ agents: [fails, works], worker: { concurrency: 1 } });
    await world.pass(LEASE_MS + 2 * HEARTBEAT_MS);
    expect((await second.end(bad.runId)).kind).toBe("failed");
    expect(await second.result(queued.runId)).toBe("done");
    // The report that was held back arrives at last, and meets the end that stands.
    reporting.open();
    await world.settled(20);
    expect((await second.end(bad.runId)).kind).toBe("failed");
    expect(second.worker?.active).toBe(0);
  });

  test("K4.2 slots of a worker come back after ends of every kind", async () => {
    await using world = await open();
    const gate = new Gate();
    const slow = new Outside().tool("slow", { after: () => gate.wait() });
    const hangs = fn("hangs", (ctx) => ctx.tool(slow, { id: "a" }), { tools: [slow] });
    const fails = fn(
      "fails",
      () => {
        throw new Error("no");
      },
      { maxAttempts: 1 },
    );
    const asks = fn("asks", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
    const errand = await world.errand({ agents: [hangs, fails, asks], worker: { concurrency: 2 } });
    const hanging = await errand.start(hangs, null);
    await until(() => gate.arrivals === 1);
    const asking = await errand.start(asks, null);
    await until(async () => (await asking.status()).state === "awaiting");
    for (let at = 0; at < 5; at++) await errand.end((await errand.start(fails, null)).runId);
    await hanging.cancel();
    await asking.cancel();
    await world.passUntil(async () => (await hanging.status()).state === "ended");
    await until(() => errand.worker?.active === 0);
    expect(errand.worker?.freeSlots()).toBe(2);
    gate.open();
  });
});
