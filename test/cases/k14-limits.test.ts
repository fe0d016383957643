import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { ErrandError } from "../../src/domain/errand-error.ts";
import { type JsonAgent, fn } from "../support/agents.ts";
import { factsOfType } from "../support/facts.ts";
import { Outside } from "../support/outside.ts";
import { onStores, until } from "../support/world.ts";

const leaf = fn("leaf", (_ctx, input) => input);
const codeOf = (error: unknown): string => String((error as ErrandError).details["code"]);

/** Delegates to `leaf` so often, one after the other, and answers what each call came to. */
function spawner(times: number, limits: JsonAgent["limits"]): JsonAgent {
  return fn(
    "spawner",
    async (ctx) => {
      const answers: string[] = [];
      for (let at = 0; at < times; at++) {
        answers.push(await ctx.run(leaf, at).then(() => "done", codeOf));
      }
      return answers;
    },
    { roster: [leaf], limits },
  );
}

onStores("K14 limits", { anyWorker: true }, (open) => {
  test("K14.2 with eight children allowed, the ninth is refused by a typed answer and the tree stays at eight", async () => {
    await using world = await open();
    const agent = spawner(10, { maxChildren: 8 });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    const refused = ["children_limit", "children_limit"];
    expect(await run.result()).toEqual([...Array.from({ length: 8 }, () => "done"), ...refused]);
    expect((await run.tree()).children).toHaveLength(8);
  });

  test("K14.2 a model that keeps spawning is told so, and its whole tree keeps within the limit", async () => {
    await using world = await open();
    const call = { tool: "agent_run", input: { agent: "leaf", goal: "again", input: 1 } };
    const model = scriptedModel(({ step, toolResults }) =>
      step === 0 || toolResults.every((one) => one.ok)
        ? { calls: [call, call, call] }
        : toolResults.map((one) => (one.ok ? "ok" : (one.value as { error: string }).error)).join(" "),
    );
    const agent = modelAgent({
      name: "spawner",
      instructions: "Spawn.",
      model,
      roster: [leaf],
      limits: { maxTreeRuns: 9 },
    });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    // Two batches of three, and of the third only two.
    expect(await run.result()).toBe("ok ok tree_limit");
    expect((await run.tree()).children).toHaveLength(8);
  });

  test("K14.2 no number of descendants, side by side, gets over the runs that the root was granted", async () => {
    await using world = await open();
    const settle = async (calls: readonly Promise<unknown>[]): Promise<number> =>
      (await Promise.allSettled(calls)).filter((one) => one.status === "fulfilled").length;
    const middle = fn("middle", (ctx) => settle([1, 2, 3, 4, 5].map((at) => ctx.run(leaf, at))), {
      roster: [leaf],
    });
    const top = fn("top", (ctx) => settle([1, 2, 3, 4].map((at) => ctx.run(middle, at))), {
      roster: [middle],
    });
    const errand = await world.errand({ agents: [top] });
    for (const maxTreeRuns of [2, 3, 5, 8, 12]) {
      const run = await errand.start(top, null, { limits: { maxTreeRuns } });
      await run.result();
      const runs = await errand.store.listRuns(errand.tenant, { rootRunId: run.runId, limit: 100 });
      expect(runs.length).toBeLessThanOrEqual(maxTreeRuns);
      expect(runs.length).toBeGreaterThan(1);
    }
  });

  test("K14.3 a depth limit of one holds on every way down: first call, retried call, resumed call", async () => {
    await using world = await open();
    const below = fn("below", (ctx) => ctx.run(leaf, null).then(() => "deeper", codeOf), { roster: [leaf] });
    let failures = 0;
    const retried = fn(
      "retried",
      async (ctx) => {
        if (failures++ === 0) throw new Error("once more");
        return ctx.run(leaf, null).then(() => "deeper", codeOf);
      },
      { roster: [leaf] },
    );
    const asking = fn(
      "asking",
      async (ctx) => {
        await ctx.ask({ prompt: "Go on?" });
        return ctx.run(leaf, null).then(() => "deeper", codeOf);
      },
      { roster: [leaf], mayAsk: true },
    );
    const top = fn(
      "top",
      async (ctx) => [await ctx.run(below, null), await ctx.run(retried, null), await ctx.run(asking, null)],
      { roster: [below, retried, asking], limits: { maxDepth: 1 } },
    );
    const errand = await world.errand({ agents: [top] });
    const run = await errand.start(top, null);
    await world.passUntil(async () => (await errand.tickets()).length === 1);
    await errand.resume(run.runId, null);
    expect(await run.result()).toEqual(["depth_limit", "depth_limit", "depth_limit"]);
    const runs = await errand.store.listRuns(errand.tenant, { rootRunId: run.runId, limit: 100 });
    expect(Math.max(...runs.map((row) => row.depth))).toBe(1);
  });

  test("K14.3 a host may narrow the limits of one run and never widen them", async () => {
    await using world = await open();
    const agent = spawner(3, { maxChildren: 2 });
    const errand = await world.errand({ agents: [agent] });
    const narrow = await errand.start(agent, null, { limits: { maxChildren: 1 } });
    expect(await narrow.result()).toEqual(["done", "children_limit", "children_limit"]);
    await expect(errand.start(agent, null, { limits: { maxChildren: 3 } })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });

  test("K14.4 A delegates to B and B to A: the second A is refused, by name, at any distance", async () => {
    await using world = await open();
    const innerA = fn("a", () => "never");
    const b = fn("b", (ctx) => ctx.run(innerA, null).catch((error: ErrandError) => error.details as never), {
      roster: [innerA],
    });
    const a = fn("a", (ctx) => ctx.run(b, null), { roster: [b] });
    const errand = await world.errand({ agents: [a] });
    const run = await errand.start(a, null);
    expect(await run.result()).toMatchObject({
      code: "cycle",
      message: expect.stringContaining("a → b → a"),
    });
    expect((await run.tree()).children[0]?.children).toEqual([]);
  });

  test("K14.4 a descent that is declared recursive counts to the depth instead", async () => {
    await using world = await open();
    const level = (below: JsonAgent | null): JsonAgent =>
      fn("a", (ctx) => (below === null ? 1 : ctx.run(below, null).then((n) => (n as number) + 1, codeOf)), {
        roster: below === null ? [] : [{ agent: below, recursive: true }],
        limits: { maxDepth: 2 },
      });
    const top = level(level(level(level(null))));
    const errand = await world.errand({ agents: [top] });
    const run = await errand.start(top, null);
    expect(await run.result()).toBe("depth_limit11");
  });

  test("K14.5 a limit of ten steps is exactly ten model calls", async () => {
    await using world = await open();
    const work = new Outside().tool("work");
    const model = scriptedModel(() => ({ calls: [{ tool: "work", input: { id: "a" } }] }));
    const agent = modelAgent({ name: "loop", instructions: "Loop.", model, tools: [work], maxSteps: 10 });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    expect(await errand.end(run.runId)).toMatchObject({
      kind: "stopped",
      reason: "limit",
      detail: expect.stringContaining("10 steps (maxSteps)"),
    });
    expect(model.calls).toBe(10);
    expect((await run.status()).usage).toMatchObject({ modelCalls: 10, toolCalls: 10 });
  });

  test("K14.5 ten steps that are enough are enough, and a restart in between counts none of them twice", async () => {
    await using world = await open();
    const work = new Outside().tool("work", { replay: "safe", effect: "read_only" });
    const model = scriptedModel(({ step }) =>
      step < 10 ? { calls: [{ tool: "work", input: { id: String(step) } }] } : "done",
    );
    const agent = modelAgent({ name: "loop", instructions: "Loop.", model, tools: [work], maxSteps: 11 });
    let steps = 0;
    const first = await world.errand({
      agents: [agent],
      hooks: {
        committed: (commit) => {
          if (commit.lane?.body.includes("step_published") === true && ++steps === 5) first.worker?.kill();
        },
      },
    });
    const run = await first.start(agent, "go");
    await until(() => first.worker?.active === 0);
    const second = await world.errand({ agents: [agent] });
    await world.passUntil(async () => (await second.status(run.runId)).state === "ended");
    expect(await second.result(run.runId)).toBe("done");
    expect(await factsOfType(second, run.runId, "step_published")).toHaveLength(10);
  });
});
