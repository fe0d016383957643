import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { CommitOutcome } from "../../src/runtime/ports/store.ts";
import { fn } from "../support/agents.ts";
import { writes } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, LEASE_MS, onEachStore, until } from "../support/world.ts";

const SIXTEEN = Array.from({ length: 16 }, (_, at) => at);

onEachStore("K21 stores", (open) => {
  test("K21.1 sixteen runs of a hundred steps on one store, under two workers: no error comes out", async () => {
    await using world = await open();
    const note = new Outside().tool("note", { replay: "safe", effect: "none" });
    const agent = fn(
      "writer",
      async (ctx, name) => {
        for (let step = 0; step < 100; step++) await ctx.tool(note, { id: `${name as number}.${step}` });
        return name;
      },
      { tools: [note] },
    );
    const one = await world.errand({ agents: [agent], worker: { concurrency: 8 } });
    await world.errand({ agents: [agent], worker: { concurrency: 8 } });
    const runs = await Promise.all(SIXTEEN.map((at) => one.start(agent, at)));
    for (const [at, run] of runs.entries()) expect(await run.result()).toBe(at);
    expect(world.told).toEqual([]);
    const [row] = await one.log(runs[0]!.runId);
    expect(row?.operationId).toMatch(/^start:/);
  });

  test("K21.3 two workers append to one run from the same version: one commits, the other is refused whole", async () => {
    await using world = await open();
    const gate = new Gate();
    const hold = new Gate();
    const refused: CommitOutcome[] = [];
    const agent = fn("agent", async (ctx) => {
      const now = await ctx.now();
      await gate.wait();
      return [now, await ctx.random()];
    });
    const first = await world.errand({
      agents: [agent],
      hooks: {
        // Its next commit is under way when its lease runs out.
        commit: async (commit) => {
          if (writes(commit, "run_ended")) await hold.wait();
        },
        call: async (name) => {
          if (name === "heartbeat" && hold.arrivals > 0) await hold.passed;
        },
        committed: (_commit, outcome) => void (outcome.kind !== "committed" && refused.push(outcome)),
      },
    });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    gate.open();
    await until(() => hold.arrivals === 1);
    const second = await world.errand({ agents: [agent] });
    await world.pass(LEASE_MS + 2 * HEARTBEAT_MS);
    await until(async () => (await second.status(run.runId)).state === "ended");
    const log = await second.log(run.runId);
    hold.open();
    await until(() => refused.length > 0);
    expect(refused).toMatchObject([{ kind: "stale" }]);
    await world.settled(20);
    expect(await second.log(run.runId)).toEqual(log);
    const versions = log.filter((row) => row.source === "lane").map((row) => row.version);
    expect(versions).toEqual(versions.map((_, at) => at + 1));
  });

  test("K21.4 a model call that lasts long holds nothing: other writers commit meanwhile", async () => {
    await using world = await open();
    const hang = new Gate();
    const model = scriptedModel([
      async () => {
        await hang.wait();
        return "done";
      },
    ]);
    const slow = modelAgent({ name: "slow", instructions: "Think.", model });
    const quick = fn("quick", async (ctx) => [await ctx.now(), await ctx.random()].length);
    let underWay = 0;
    const errand = await world.errand({
      agents: [slow, quick],
      hooks: { commit: () => void (underWay += 1), committed: () => void (underWay -= 1) },
    });
    const thinking = await errand.start(slow, "go");
    await until(() => hang.arrivals === 1);
    await world.settled();
    // While the model thinks no commit is open.
    expect(underWay).toBe(0);
    for (const _ of SIXTEEN) expect(await errand.run(quick, null)).toBe(2);
    await world.pass(10_000, 1_000);
    expect((await thinking.status()).state).toBe("running");
    hang.open();
    expect(await thinking.result()).toBe("done");
  });

  test("K21.4 no store call is open while a tool runs", async () => {
    await using world = await open();
    const store = { open: 0 };
    const seen: number[] = [];
    const look = new Outside().tool("look", {
      replay: "safe",
      effect: "read_only",
      after: () => void seen.push(store.open),
    });
    const agent = fn("agent", (ctx) => Promise.all(["a", "b"].map((id) => ctx.tool(look, { id }))), {
      tools: [look],
    });
    const errand = await world.errand({
      agents: [agent],
      hooks: { commit: () => void (store.open += 1), committed: () => void (store.open -= 1) },
    });
    expect(await errand.run(agent, null)).toEqual(["look a", "look b"]);
    expect(seen).toEqual([0, 0]);
  });
});
