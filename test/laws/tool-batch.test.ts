import { expect, test } from "vitest";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import { EMPTY_HISTORY_DIGEST, chainDigest } from "../../src/domain/thread/history.ts";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { fn } from "../support/agents.ts";
import { factsOf, factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onStores, until } from "../support/world.ts";

onStores("Tool batch", { anyWorker: true }, (open) => {
  test("L8 a tool that reads the store finds its batch and its own `Executing` committed", async () => {
    await using world = await open();
    const store = await world.connect();
    const seen: RunFact["type"][][] = [];
    const bothHaveSeen = new Gate();
    const peek = defineTool({
      name: "peek",
      description: "Looks at what is committed.",
      inputSchema: { type: "object" },
      replay: "safe",
      effect: "read_only",
      run: async (_input, { tenant, runId }) => {
        const rows = await store.readLog(tenant, { runId }, 0, 100);
        seen.push(rows.flatMap((row) => (JSON.parse(row.body) as RunFact[]).map((fact) => fact.type)));
        if (seen.length === 2) bothHaveSeen.open();
        await bothHaveSeen.wait();
        return null;
      },
    });
    const agent = fn("agent", (ctx) => Promise.all([ctx.tool(peek, {}), ctx.tool(peek, {})]), {
      tools: [peek],
    });
    const errand = await world.errand({ agents: [agent] });
    await errand.run(agent, null);
    const committed = [
      "run_created",
      "attempt_started",
      "step_published",
      "call_executing",
      "call_executing",
    ];
    expect(seen).toEqual([committed, committed]);
  });

  test("L8 in call order a call's `Executing` is committed after the call before it has ended", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn("agent", (ctx) => Promise.all(["a", "b", "c"].map((id) => ctx.tool(mail, { id }))), {
      tools: [mail],
    });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await run.result();
    const calls = (await factsOf(errand, run.runId)).flatMap((fact) =>
      fact.type === "call_executing" || fact.type === "call_completed" ? [[fact.type, fact.index]] : [],
    );
    expect(calls).toEqual(
      [0, 1, 2].flatMap((at) => [
        ["call_executing", at],
        ["call_completed", at],
      ]),
    );
    expect(outside.done).toEqual(["mail:a", "mail:b", "mail:c"]);
  });

  test("L9 results come in call order whatever the order in which they finish, one answer a call", async () => {
    const orders = [0, 1, 2, 3].flatMap((a) =>
      [0, 1, 2, 3].flatMap((b) => [0, 1, 2, 3].map((c) => [a, b, c, 6 - a - b - c])),
    );
    const permutations = orders.filter((order) => new Set(order).size === 4);
    expect(permutations).toHaveLength(24);
    await using world = await open();
    for (const [at, order] of permutations.entries()) {
      const gates = [0, 1, 2, 3].map(() => new Gate());
      const look = new Outside().tool("look", {
        replay: "safe",
        effect: "read_only",
        after: (id) => gates[Number(id)]?.wait(),
      });
      const calls = [0, 1, 2, 3].map((id) => ({ tool: "look", input: { id: String(id) } }));
      const model = scriptedModel([{ calls }, "done"]);
      const agent = modelAgent({ name: `order-${at}`, instructions: "Look.", model, tools: [look] });
      const errand = await world.errand({ agents: [agent], worker: {} });
      const run = await errand.start(agent, "go");
      await until(() => gates.every((gate) => gate.arrivals === 1));
      for (const [done, id] of order.entries()) {
        gates[id]?.open();
        await until(async () => (await factsOfType(errand, run.runId, "call_completed")).length === done + 1);
      }
      expect(await run.result()).toBe("done");
      const answered = (await factsOfType(errand, run.runId, "call_completed")).map((fact) => fact.index);
      expect(answered).toEqual(order);
      const [, assistant, answers] = await errand.history(run.runId);
      expect(answers?.content).toMatchObject(
        [0, 1, 2, 3].map((id) => ({ toolCallId: `call_0_${id}`, output: { value: `look ${id}` } })),
      );
      expect(assistant?.content).toMatchObject([0, 1, 2, 3].map((id) => ({ toolCallId: `call_0_${id}` })));
      errand.worker?.kill();
    }
  });

  test("L9 history is chained by digest, and a committed prefix never changes", async () => {
    await using world = await open();
    const mail = new Outside().tool("mail");
    const call = (id: string) => ({ calls: [{ tool: "mail", input: { id } }] });
    const model = scriptedModel([call("a"), call("b"), "done"]);
    const agent = modelAgent({ name: "writer", instructions: "Write.", model, tools: [mail] });
    const prefixes: string[][] = [];
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        committed: async (commit) => {
          if (commit.lane === null) return;
          prefixes.push((await errand.history(commit.lane.runId)).map((message) => JSON.stringify(message)));
        },
      },
    });
    const run = await errand.start(agent, "go");
    await run.result();
    const history = await errand.history(run.runId);
    expect(history.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "assistant",
    ]);
    const whole = history.map((message) => JSON.stringify(message));
    for (const prefix of prefixes) expect(whole.slice(0, prefix.length)).toEqual(prefix);

    const chain = [EMPTY_HISTORY_DIGEST];
    for (const message of history) chain.push(chainDigest(chain.at(-1)!, message));
    const named = (await factsOf(errand, run.runId)).flatMap((fact) =>
      fact.type === "history_appended"
        ? [fact.digest]
        : fact.type === "step_published"
          ? [fact.historyDigest]
          : [],
    );
    // Each names the history up to its own message: the prompt, two steps, the last word.
    expect(named).toEqual([chain[1], chain[2], chain[4], chain[6]]);
    expect(JSON.stringify(history)).not.toMatch(/attempt|1700000000/);
  });

  test("L9 the same script on another store writes the same history, byte for byte", async () => {
    const texts: string[] = [];
    for (const concurrency of [1, 8]) {
      await using world = await open();
      const mail = new Outside().tool("mail");
      const model = scriptedModel([
        { text: "Two letters.", calls: ["a", "b"].map((id) => ({ tool: "mail", input: { id } })) },
        ({ toolResults }) => `Sent ${toolResults.length}.`,
      ]);
      const agent = modelAgent({ name: "writer", instructions: "Write.", model, tools: [mail] });
      const errand = await world.errand({ agents: [agent], worker: { concurrency } });
      const run = await errand.start(agent, "go", { key: "letters" });
      expect(await run.result()).toBe("Sent 2.");
      texts.push(JSON.stringify(await errand.history(run.runId)));
    }
    expect(texts[0]).toBe(texts[1]);
  });

  test("L11 at most one call of a batch awaits, and the calls behind it have not started", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail", { approval: true });
    const agent = fn("agent", (ctx) => Promise.all(["a", "b", "c"].map((id) => ctx.tool(mail, { id }))), {
      tools: [mail],
    });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    for (const done of [0, 1, 2]) {
      await until(async () => (await errand.tickets()).length === 1 && outside.done.length === done);
      await errand.resume(run.runId, { approved: true });
    }
    expect(await run.result()).toEqual(["mail a", "mail b", "mail c"]);
    expect(outside.done).toEqual(["mail:a", "mail:b", "mail:c"]);
    const facts = await factsOf(errand, run.runId);
    let awaiting = 0;
    for (const { type } of facts) {
      if (type === "call_awaiting") awaiting += 1;
      if (type === "call_resumed") awaiting -= 1;
      expect(awaiting).toBeLessThanOrEqual(1);
    }
  });

  test("L11 a run's end seals its batch: one answer a call, by what each had come to", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const mail = outside.tool("mail", { after: (id) => (id === "b" ? gate.wait() : undefined) });
    const agent = fn("agent", (ctx) => Promise.all(["a", "b", "c"].map((id) => ctx.tool(mail, { id }))), {
      tools: [mail],
    });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await until(() => gate.arrivals === 1);
    await run.cancel();
    // The tool does not stop when it is told to, so it is fenced after the grace time.
    await world.passUntil(async () => (await run.status()).state === "ended");
    const facts = await factsOf(errand, run.runId);
    const answers = facts.filter(
      (fact) => fact.type === "call_completed" || fact.type === "call_indeterminate",
    );
    expect(answers).toMatchObject([
      { type: "call_completed", index: 0 },
      { type: "call_indeterminate", index: 1, reason: "sealed" },
      { type: "call_indeterminate", index: 2, reason: "not_started" },
    ]);
    const last = facts.at(-1);
    expect(last).toMatchObject({ type: "run_ended", end: { kind: "canceled" } });
    expect(facts.filter((fact) => fact.seq === last?.seq).map((fact) => fact.type)).toEqual(
      expect.arrayContaining(["call_indeterminate", "batch_finalized", "run_ended"]),
    );
    expect(await errand.effects(run.runId)).toMatchObject([{ outcome: "done" }, { outcome: "unknown" }]);
    gate.open();
    await until(() => gate.passed.then(() => true));
    expect(await factsOf(errand, run.runId)).toHaveLength(facts.length);
  });
});
