import { expect, test } from "vitest";
import { fn } from "../support/agents.ts";
import { Gate } from "../support/outside.ts";
import { onStores, until } from "../support/world.ts";

onStores("Limits of running runs", { needs: ["limits"] }, (open) => {
  test("K4 a tenant's limit is obeyed by every worker, and the reason shown is true", async () => {
    await using world = await open();
    const gate = new Gate();
    const work = fn("work", async () => {
      await gate.wait();
      return 1;
    });
    const errand = await world.errand({ agents: [work] });
    await world.errand({ agents: [work] });
    const { store, tenant } = errand;
    await store.operations.setLimits(tenant, { tenant: 2, tree: null, agents: {} });
    const runs = await Promise.all([1, 2, 3, 4].map((at) => errand.start(work, at)));
    await until(async () => (await store.countRuns(tenant)).running === 2);
    const whys = await Promise.all(runs.map(async (run) => (await run.status()).why));
    expect(whys.filter((why) => why.startsWith("It is running"))).toHaveLength(2);
    expect(
      whys.filter((why) => why === "It is ready and waits for the limit of the tenant: 2 of 2 run."),
    ).toHaveLength(2);
    gate.open();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 1, 1, 1]);
  });

  test("K4.1 with one running run a tree, a tree of any depth and width still ends", async () => {
    await using world = await open();
    const leaf = fn("leaf", (_ctx, at) => at);
    const middle = fn("middle", async (ctx, at) => ctx.run(leaf, at), { roster: [leaf] });
    const top = fn("top", async (ctx) => Promise.all([1, 2, 3].map((at) => ctx.run(middle, at))), {
      roster: [middle],
    });
    const errand = await world.errand({ agents: [top] });
    const { store, tenant } = errand;
    await store.operations.setLimits(tenant, { tenant: null, tree: 1, agents: {} });
    const trees = await Promise.all([1, 2].map(() => errand.start(top, null)));
    expect(await Promise.all(trees.map((run) => run.result()))).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    const { tenant: running } = await store.operations.countRunning(tenant, null);
    expect(running).toBe(0);
  });

  test("K7.4 an agent's full limit lets others pass, names itself, and 0 says what to do", async () => {
    await using world = await open();
    const slow = fn("slow", () => 1);
    const quick = fn("quick", () => 2);
    const errand = await world.errand({ agents: [slow, quick] });
    const { store, tenant } = errand;
    await store.operations.setLimits(tenant, { tenant: null, tree: null, agents: { slow: 0 } });
    const blocked = await errand.start(slow, null);
    expect(await (await errand.start(quick, null)).result()).toBe(2);
    expect((await blocked.status()).why).toBe(
      "It is ready, but the limit of agent slow is 0: nothing begins until it is raised (`errand limits`).",
    );
    await store.operations.setLimits(tenant, { tenant: null, tree: null, agents: {} });
    expect(await blocked.result()).toBe(1);
  });
});
