import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import { fn } from "../support/agents.ts";
import { factsOf, factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onEachStore, until } from "../support/world.ts";

const TWELVE = Array.from({ length: 12 }, (_, at) => at);

onEachStore("K9 late results", (open) => {
  test("K9.1 twelve children end after their parent: all are kept as discarded, its transcript is unchanged", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    // It does not listen to being told to stop, so it ends when it likes.
    const stubborn = outside.tool("work", { after: () => gate.wait() });
    const child = fn("child", (ctx) => ctx.tool(stubborn, { id: "a" }), { tools: [stubborn] });
    const calls = TWELVE.map((at) => ({
      tool: "agent_run",
      input: { agent: "child", goal: `part ${at}`, input: at },
    }));
    const parent = modelAgent({
      name: "parent",
      instructions: "Delegate.",
      model: scriptedModel([{ calls }, "done"]),
      roster: [child],
      limits: { maxParallelChildren: 12 },
    });
    const errand = await world.errand({ agents: [parent], worker: { concurrency: 20 } });
    const run = await errand.start(parent, "go");
    await until(() => gate.arrivals === 12);
    await run.cancel();
    expect((await errand.end(run.runId)).kind).toBe("canceled");
    const facts = await factsOf(errand, run.runId);
    const history = JSON.stringify(await errand.history(run.runId));
    await world.passUntil(async () => (await run.tree()).children.every((one) => one.state === "ended"));
    gate.open();
    await world.settled(20);
    const inbox = await errand.store.listInbox(errand.tenant, run.runId);
    expect(inbox.map((row) => row.status)).toEqual(TWELVE.map(() => "discarded"));
    const relations = await errand.store.listDelegations(errand.tenant, {
      parentRunId: run.runId,
      limit: 50,
    });
    expect(relations.map((row) => row.status)).toEqual(TWELVE.map(() => "closed"));
    expect(JSON.stringify(await errand.history(run.runId))).toBe(history);
    expect(await factsOf(errand, run.runId)).toEqual(facts);
    // Their work is not forgotten: it stands in the tree and in their ledgers.
    expect((await run.tree()).totalUsage.toolCalls).toBe(12);
    const [first] = (await run.tree()).children;
    expect(await errand.effects(first!.runId)).toMatchObject([{ outcome: "unknown" }]);
  });

  test("K9.2 tools of a batch that was given up end late: nothing of them appears in the next batch", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const slow = outside.tool("slow", { after: () => gate.wait(), timeoutMs: 20, parallel: true });
    const quick = outside.tool("quick", { parallel: true });
    const step = (tool: string) => ({ calls: ["a", "b"].map((id) => ({ tool, input: { id } })) });
    const agent = modelAgent({
      name: "agent",
      instructions: "Work.",
      model: scriptedModel([step("slow"), step("quick"), "done"]),
      tools: [slow, quick],
    });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, "go");
    expect(await run.result()).toBe("done");
    gate.open();
    await world.settled(20);
    const answers = (await factsOfType(errand, run.runId, "call_completed")).map(
      ({ step: at, index, outcome }) => [
        at,
        index,
        outcome.ok ? (outcome.value as string) : outcome.error.code,
      ],
    );
    expect(answers.map((one) => one.join(" ")).toSorted()).toEqual(["2 0 quick a", "2 1 quick b"]);
    const unknown = await factsOfType(errand, run.runId, "call_indeterminate");
    expect(unknown.map(({ step: at, index, reason }) => [at, index, reason])).toEqual([
      [1, 0, "timed_out"],
      [1, 1, "timed_out"],
    ]);
  });

  test("K9.2 a canceled run's tools end after it: each call is sealed once, and nothing is added", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const slow = outside.tool("slow", { after: () => gate.wait(), parallel: true });
    const agent = fn(
      "agent",
      (ctx) => Promise.all([ctx.tool(slow, { id: "a" }), ctx.tool(slow, { id: "b" })]),
      {
        tools: [slow],
      },
    );
    const errand = await world.errand({ agents: [agent] });
    const canceled = await errand.start(agent, null);
    await until(() => gate.arrivals === 2);
    await canceled.cancel();
    await world.passUntil(async () => (await canceled.status()).state === "ended");
    const next = await errand.start(agent, null);
    await until(() => gate.arrivals === 4);
    gate.open();
    expect(await next.result()).toEqual(["slow a", "slow b"]);
    const sealed = await factsOfType(errand, canceled.runId, "call_indeterminate");
    expect(sealed.map(({ index, reason }) => [index, reason])).toEqual([
      [0, "sealed"],
      [1, "sealed"],
    ]);
    expect((await factsOf(errand, canceled.runId)).at(-1)?.type).toBe("run_ended");
  });
});
