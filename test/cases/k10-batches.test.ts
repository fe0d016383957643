import fc from "fast-check";
import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import { fn } from "../support/agents.ts";
import { factsOf, factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onStores, turns, until } from "../support/world.ts";

type Part = {
  readonly toolCallId: string;
  readonly output?: { readonly type: string; readonly value: unknown };
};

onStores("K10 batches", { anyWorker: true }, (open) => {
  test("K10.1 one of three calls throws: value, typed error, value, in call order", async () => {
    await using world = await open();
    const outside = new Outside();
    const work = outside.tool("work", {
      parallel: true,
      after: (id) => {
        if (id === "b") throw new Error("no such thing");
      },
    });
    const calls = ["a", "b", "c"].map((id) => ({ tool: "work", input: { id } }));
    const model = scriptedModel([{ calls }, "done"]);
    const agent = modelAgent({ name: "agent", instructions: "Work.", model, tools: [work] });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    expect(await run.result()).toBe("done");
    const [, , answers] = await errand.history(run.runId);
    expect(answers?.content).toMatchObject([
      { output: { type: "text", value: "work a" } },
      {
        output: {
          type: "error-json",
          value: { error: "tool_error", message: expect.stringContaining("no such thing") },
        },
      },
      { output: { type: "text", value: "work c" } },
    ]);
  });

  test("K10.2 four calls that finish as 4, 2, 1, 3 are answered as 1, 2, 3, 4", async () => {
    await using world = await open();
    const gates = new Map(["1", "2", "3", "4"].map((id) => [id, new Gate()]));
    const work = new Outside().tool("work", { parallel: true, after: (id) => gates.get(id)?.wait() });
    const calls = [...gates.keys()].map((id) => ({ tool: "work", input: { id } }));
    let asked: unknown;
    const model = scriptedModel([{ calls }, ({ toolResults }) => ((asked = toolResults), "done")]);
    const agent = modelAgent({ name: "agent", instructions: "Work.", model, tools: [work] });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    await until(() => [...gates.values()].every((gate) => gate.arrivals === 1));
    for (const id of ["4", "2", "1", "3"]) {
      gates.get(id)?.open();
      await world.settled();
    }
    expect(await run.result()).toBe("done");
    expect(asked).toMatchObject(
      ["1", "2", "3", "4"].map((id, at) => ({ callId: `call_0_${at}`, value: `work ${id}` })),
    );
  });

  test("K10.3 calls of one tool, in any number and any finishing order: position and call id agree", async () => {
    const finishing = fc.integer({ min: 2, max: 8 }).chain((size) =>
      fc.shuffledSubarray(
        Array.from({ length: size }, (_, at) => at),
        { minLength: size },
      ),
    );
    const scenario = async (order: readonly number[]): Promise<void> => {
      await using world = await open();
      const gates = order.map(() => new Gate());
      const work = new Outside().tool("work", { parallel: true, after: (id) => gates[Number(id)]?.wait() });
      const calls = order.map((_, at) => ({ tool: "work", input: { id: String(at) }, id: `provider-${at}` }));
      const model = scriptedModel([{ calls }, "done"]);
      const agent = modelAgent({ name: "agent", instructions: "Work.", model, tools: [work] });
      const errand = await world.errand({ agents: [agent] });
      const run = await errand.start(agent, "go");
      await until(() => gates.every((gate) => gate.arrivals === 1));
      for (const at of order) {
        gates[at]?.open();
        await turns(at % 2);
      }
      await run.result();
      const [, asked, answered] = await errand.history(run.runId);
      const ids = (asked!.content as unknown as Part[]).map((part) => part.toolCallId);
      expect(ids).toEqual(calls.map((call) => call.id));
      expect(
        (answered!.content as unknown as Part[]).map((part) => [part.toolCallId, part.output?.value]),
      ).toEqual(ids.map((id, at) => [id, `work ${at}`]));
    };
    await fc.assert(fc.asyncProperty(finishing, scenario), { numRuns: 25 });
  });

  test("K10.4 one of three calls is rejected: each has exactly one answer, the rejection among them", async () => {
    await using world = await open();
    const outside = new Outside();
    const work = outside.tool("work", { approval: ({ id }) => id === "b" });
    const calls = ["a", "b", "c"].map((id) => ({ tool: "work", input: { id } }));
    const model = scriptedModel([{ calls }, "done"]);
    const agent = modelAgent({ name: "agent", instructions: "Work.", model, tools: [work] });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    await until(async () => (await run.status()).state === "awaiting");
    await errand.resume(run.runId, { approved: false, reason: "not b" });
    expect(await run.result()).toBe("done");
    const [, , answers] = await errand.history(run.runId);
    expect(answers?.content).toMatchObject([
      { output: { value: "work a" } },
      { output: { value: { error: "approval_rejected", message: "not b" } } },
      { output: { value: "work c" } },
    ]);
    expect(outside.done).toEqual(["work:a", "work:c"]);
    expect(await factsOfType(errand, run.runId, "call_completed")).toHaveLength(3);
  });

  test("K10.5 one agent delegated to twice at once: two runs that share nothing, as if one after the other", async () => {
    await using world = await open();
    const gate = new Gate();
    const counter = fn("counter", async (ctx, start) => {
      let count = start as number;
      for (let step = 0; step < 3; step++) {
        await ctx.random();
        count += 1;
        await gate.wait();
      }
      return [ctx.runId, count];
    });
    const both = fn("both", (ctx) => Promise.all([ctx.run(counter, 10), ctx.run(counter, 20)]), {
      roster: [counter],
    });
    const errand = await world.errand({ agents: [both] });
    const run = await errand.start(both, null);
    await until(() => gate.arrivals === 2);
    gate.open();
    const [[first, ten], [second, twenty]] = (await run.result()) as [[string, number], [string, number]];
    expect([ten, twenty]).toEqual([13, 23]);
    expect(first).not.toBe(second);
    const threads = (await run.tree()).children.map((one) => one.threadId);
    expect(new Set(threads).size).toBe(2);
  });

  test("K10.6 two of five calls are done and the process dies: both are kept, the three others are answered in one commit", async () => {
    await using world = await open();
    const outside = new Outside();
    const hang = new Gate();
    const work = outside.tool("work", {
      parallel: true,
      after: (id) => (id > "2" ? hang.wait() : undefined),
    });
    const calls = ["1", "2", "3", "4", "5"].map((id) => ({ tool: "work", input: { id } }));
    const model = scriptedModel([{ calls }, "done"]);
    const agent = modelAgent({ name: "agent", instructions: "Work.", model, tools: [work] });
    const first = await world.errand({ agents: [agent], worker: {} });
    const run = await first.start(agent, "go");
    await until(() => hang.arrivals === 3);
    await until(async () => (await factsOfType(first, run.runId, "call_completed")).length === 2);
    first.worker?.kill();
    const second = await world.errand({ agents: [agent] });
    await world.passUntil(async () => (await second.status(run.runId)).state === "ended");
    const facts = await factsOf(second, run.runId);
    const kept = facts.filter((fact) => fact.type === "call_completed");
    expect(kept).toMatchObject([{ outcome: { value: "work 1" } }, { outcome: { value: "work 2" } }]);
    const given = facts.filter((fact) => fact.type === "call_indeterminate");
    expect(given.map((fact) => [fact.index, fact.reason])).toEqual(
      [2, 3, 4].map((at) => [at, "outcome_unknown"]),
    );
    expect(new Set(given.map((fact) => fact.seq)).size).toBe(1);
    expect(facts.find((fact) => fact.type === "batch_finalized")?.seq).toBe(given[0]?.seq);
    expect(outside.done).toHaveLength(5);
    hang.open();
  });
});
