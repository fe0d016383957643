import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import { derivedIds } from "../../src/domain/delegation/derived-ids.ts";
import type { ErrandError } from "../../src/domain/errand-error.ts";
import { parseDelegationId } from "../../src/domain/id.ts";
import type { Commit } from "../../src/runtime/ports/store.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { factsOfType, writes } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onEachStore, until } from "../support/world.ts";

onEachStore("K5 duplicate execution", (open) => {
  test("K5.1 the reply to a result's commit is lost: it is looked up by its id, and the effect is not repeated", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn("agent", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    let lost = 0;
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        committed: (commit, outcome) => {
          if (outcome.kind !== "committed" || !writes(commit, "call_completed")) return;
          lost += 1;
          throw brokenConnection();
        },
      },
    });
    const run = await errand.start(agent, null);
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("mail a");
    expect(lost).toBe(1);
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("K5.1 the result's commit never arrives and the worker dies: Indeterminate for a tool that may not repeat", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn("agent", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    const first: Errand = await world.errand({
      agents: [agent],
      hooks: {
        commit: (commit) => {
          if (!writes(commit, "call_completed")) return;
          first.worker?.kill();
          throw brokenConnection();
        },
      },
    });
    const run = await first.start(agent, null);
    await until(() => first.worker?.active === 0);
    const second = await world.errand({ agents: [agent] });
    await world.passUntil(async () => (await second.status(run.runId)).state === "ended");
    expect(await second.end(run.runId)).toMatchObject({ kind: "failed", error: { code: "CALL_FAILED" } });
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("K5.2 killed after the effect and before its commit: the ledger says unknown, and a person may decide", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const mail = outside.tool("mail", { after: () => (outside.done.length === 1 ? gate.wait() : undefined) });
    const agent = fn(
      "agent",
      async (ctx) => {
        try {
          return await ctx.tool(mail, { id: "daily" });
        } catch (error) {
          const { code } = (error as ErrandError).details;
          return ctx.ask({ prompt: `The mail is ${String(code)}: was it sent?`, kind: "blocked" });
        }
      },
      { tools: [mail], mayAsk: true, maxAttempts: 4 },
    );
    const first = await world.errand({ agents: [agent] });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    first.worker?.kill();
    const second = await world.errand({ agents: [agent] });
    await world.passUntil(async () => (await second.tickets()).length === 1);
    expect(await second.tickets()).toMatchObject([
      { kind: "blocked", prompt: "The mail is outcome_unknown: was it sent?" },
    ]);
    expect(await second.effects(run.runId)).toMatchObject([
      { tool: "mail", outcome: "unknown", executions: 1 },
    ]);
    await second.resume(run.runId, "it was");
    expect(await second.result(run.runId)).toBe("it was");
    expect(outside.done).toEqual(["mail:daily"]);
    gate.open();
  });

  test("K5.3 a blank id or key is refused, and nothing is stored", async () => {
    await using world = await open();
    const agent = fn("agent", () => "done");
    const errand = await world.errand({ agents: [agent], worker: false });
    for (const key of ["", " ", "\t\n", "x".repeat(201)]) {
      await expect(errand.start(agent, null, { key })).rejects.toMatchObject({ code: "INVALID_INPUT" });
    }
    for (const threadId of ["", " ", "thr_"]) {
      await expect(errand.start(agent, null, { threadId })).rejects.toMatchObject({ code: "INVALID_ID" });
    }
    for (const id of ["", " ", "del_", "run_x"]) expect(() => parseDelegationId(id)).toThrow("INVALID_ID");
    for (const id of ["", " ", "run_"]) {
      await expect(errand.status(id)).rejects.toMatchObject({ code: "INVALID_ID" });
    }
    expect(await errand.list()).toEqual([]);
    expect(await errand.store.readLog(errand.tenant, { all: true }, 0, 10)).toEqual([]);
  });

  test("K5.4 the same key with another agent, input or option is a conflict, and the first run is unchanged", async () => {
    await using world = await open();
    const agent = fn("agent", (_ctx, input) => input);
    const other = fn("other", () => "other");
    const errand = await world.errand({ agents: [agent, other] });
    const run = await errand.start(agent, { order: 7 }, { key: "order-7" });
    const conflicts = [
      () => errand.start(other, { order: 7 }, { key: "order-7" }),
      () => errand.start(agent, { order: 8 }, { key: "order-7" }),
      () => errand.start(agent, { order: 7 }, { key: "order-7", priority: 3 }),
    ];
    for (const start of conflicts) await expect(start()).rejects.toMatchObject({ code: "START_CONFLICT" });
    expect(await run.result()).toEqual({ order: 7 });
    for (const start of conflicts) await expect(start()).rejects.toMatchObject({ code: "START_CONFLICT" });
    const again = await errand.start(agent, { order: 7 }, { key: "order-7" });
    expect(again.runId).toBe(run.runId);
    expect(await errand.list()).toHaveLength(1);
  });

  test("K5.4 a child id that another run already has is refused: the first keeps it, the parent's call fails", async () => {
    await using world = await open();
    world.tampered = true;
    const child = fn("child", () => "child");
    const squatter = fn("squatter", () => "squatter");
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child], maxAttempts: 2 });
    const errand = await world.errand({ agents: [parent, squatter] });
    const host = await world.errand({
      agents: [parent, squatter],
      worker: false,
      // A host that could choose ids would take the child's.
      hooks: {
        commit: (commit) =>
          JSON.parse(JSON.stringify(commit).replaceAll(String(commit.create[0]?.runId), taken)) as Commit,
      },
    });
    const planned = await errand.start(parent, null, { key: "parent", delayMs: 60_000 });
    const taken = derivedIds(planned.runId, { step: 1, index: 0 }).childRunId;
    await host.start(squatter, null);
    await until(async () => (await errand.status(taken)).state === "ended");
    await world.passUntil(async () => (await planned.status()).state === "ended");
    expect(await errand.status(taken)).toMatchObject({ agent: "squatter", end: { kind: "completed" } });
    expect((await errand.end(planned.runId)).kind).toBe("failed");
    expect(
      await errand.store.listDelegations(errand.tenant, { parentRunId: planned.runId, limit: 5 }),
    ).toEqual([]);
  });

  test("K5.5 a run that is recovered four times asks its model three times, not more", async () => {
    await using world = await open();
    const work = new Outside().tool("work", { replay: "safe", effect: "read_only" });
    const route = (id: string) => ({ calls: [{ tool: "work", input: { id } }] });
    const model = scriptedModel([route("first"), route("second"), "done"]);
    const agent = modelAgent({ name: "router", instructions: "Route.", model, tools: [work] });
    const deaths = new Set<string>();
    const mortal = async (): Promise<Errand> => {
      const errand: Errand = await world.errand({
        agents: [agent],
        hooks: {
          // Dies once behind each of the first four commits, with the decision already in the log.
          committed: ({ lane, operationId }) => {
            if (lane === null || deaths.size >= 4 || deaths.has(operationId)) return;
            deaths.add(operationId);
            errand.worker?.kill();
          },
        },
      });
      return errand;
    };
    let errand = await mortal();
    const run = await errand.start(agent, "go");
    for (let life = 1; life <= 4; life++) {
      await world.passUntil(() => deaths.size === life);
      errand = await mortal();
    }
    await world.passUntil(async () => (await errand.status(run.runId)).state === "ended");
    expect(await errand.result(run.runId)).toBe("done");
    expect(model.calls).toBe(3);
    expect(await factsOfType(errand, run.runId, "step_published")).toHaveLength(2);
  });

  test("K5.7 a run that fails after its second shell call and is tried again repeats neither", async () => {
    await using world = await open();
    const outside = new Outside();
    const shell = outside.tool("shell");
    let attempts = 0;
    const agent = fn(
      "agent",
      async (ctx) => {
        const done = [await ctx.tool(shell, { id: "one" }), await ctx.tool(shell, { id: "two" })];
        if (++attempts === 1) throw new Error("the network is down");
        return [...done, await ctx.tool(shell, { id: "three" })];
      },
      { tools: [shell] },
    );
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toEqual(["shell one", "shell two", "shell three"]);
    expect(outside.done).toEqual(["shell:one", "shell:two", "shell:three"]);
    expect((await run.status()).attempt).toBe(2);
    expect(new Set(outside.keys).size).toBe(3);
  });
});
