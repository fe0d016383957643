import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import { ErrandError } from "../../src/domain/errand-error.ts";
import type { Commit } from "../../src/runtime/ports/store.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import type { DefinedTool } from "../../src/tools/define-tool.ts";
import { type JsonAgent, fn } from "../support/agents.ts";
import { factsOf, factsOfType, writes } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, LEASE_MS, type World, onEachStore, until } from "../support/world.ts";

/** An agent that calls one tool once, and answers what came of it. */
function caller(tool: DefinedTool<{ id: string }, string>): JsonAgent {
  return fn(
    "caller",
    (ctx) =>
      ctx.tool(tool, { id: "a" }).catch((error: unknown) => {
        if (!ErrandError.is(error)) throw error;
        return `error ${String(error.details["code"])}`;
      }),
    { tools: [tool] },
  );
}

/** An Errand whose worker dies at the first commit that `when` picks, once the store has it. */
async function doomed(
  world: World,
  agents: readonly JsonAgent[],
  when: (commit: Commit) => boolean,
): Promise<Errand> {
  const errand: Errand = await world.errand({
    agents,
    hooks: {
      committed: (commit) => {
        if (!when(commit)) return;
        errand.worker?.kill();
        throw brokenConnection();
      },
    },
  });
  return errand;
}

async function takeover(world: World, agents: readonly JsonAgent[], runId: string): Promise<Errand> {
  const errand = await world.errand({ agents });
  await world.passUntil(async () => (await errand.status(runId)).state === "ended");
  return errand;
}

onEachStore("Recovery", (open) => {
  const policies = [
    // The worker dies with the call running, so its effect has happened once already.
    ["never", "error outcome_unknown", ["mail:a"], "unknown"],
    ["safe", "mail a", ["mail:a", "mail:a"], "done"],
    ["idempotent", "mail a", ["mail:a", "mail:a"], "done"],
    ["durable", "found a", ["mail:a"], "done"],
  ] as const;

  test.each(policies)(
    "L10 a call under `%s` that a crash left running",
    async (replay, answer, effects, ledger) => {
      await using world = await open();
      const outside = new Outside();
      const hang = new Gate();
      const reconnected: string[] = [];
      const tool = outside.tool("mail", {
        replay,
        effect: replay === "safe" ? "read_only" : "idempotent",
        after: () => (outside.done.length === 1 ? hang.wait() : undefined),
        ...(replay === "durable"
          ? { reconnect: ({ id }, { effectKey }) => (reconnected.push(effectKey), `found ${id}`) }
          : {}),
      });
      const agent = caller(tool);
      const first = await world.errand({ agents: [agent] });
      const run = await first.start(agent, null);
      await until(() => hang.arrivals === 1);
      first.worker?.kill();
      const second = await takeover(world, [agent], run.runId);
      expect(await second.result(run.runId)).toBe(answer);
      expect(outside.done).toEqual(effects);
      // Every execution has the same effect key, and so has the reconnection.
      expect(new Set([...outside.keys, ...reconnected])).toEqual(new Set([`${run.runId}:1.0`]));
      expect(await second.effects(run.runId)).toMatchObject([
        { key: `${run.runId}:1.0`, outcome: ledger, executions: replay === "never" ? 1 : 2 },
      ]);
      expect(await factsOfType(second, run.runId, "attempt_started")).toHaveLength(1);
      hang.open();
    },
  );

  test.each(policies)(
    "L10 a worker that stops between committing `Executing` and the effect, under `%s`",
    async (replay, answer, effects) => {
      await using world = await open();
      const outside = new Outside();
      const tool = outside.tool("mail", {
        replay,
        effect: replay === "safe" ? "read_only" : "idempotent",
        ...(replay === "durable" ? { reconnect: ({ id }) => `found ${id}` } : {}),
      });
      const agent = caller(tool);
      const first = await doomed(world, [agent], (commit) => writes(commit, "call_executing"));
      const run = await first.start(agent, null);
      await until(() => first.worker?.active === 0);
      expect(outside.done).toEqual([]);
      const second = await takeover(world, [agent], run.runId);
      expect(await second.result(run.runId)).toBe(answer);
      // Whether it had begun cannot be known, so `never` is not begun now either.
      expect(outside.done).toEqual(effects.slice(1));
    },
  );

  test("L10 no effect begins after the worker was told to stop, though its commit stands", async () => {
    await using world = await open();
    const outside = new Outside();
    const tool = outside.tool("mail", { replay: "safe", effect: "read_only" });
    const agent = caller(tool);
    const first: Errand = await world.errand({
      agents: [agent],
      // The reply arrives, and at the same time the worker is stopped by force.
      hooks: { committed: (commit) => void (writes(commit, "call_executing") && first.worker?.kill()) },
    });
    const run = await first.start(agent, null);
    await until(() => first.worker?.active === 0);
    expect(outside.done).toEqual([]);
    const second = await takeover(world, [agent], run.runId);
    expect(await second.result(run.runId)).toBe("mail a");
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("L10 no effect begins under a lease that was not renewed recently enough", async () => {
    await using world = await open();
    const outside = new Outside();
    const tool = outside.tool("mail");
    const agent = caller(tool);
    let silent = false;
    const first = await world.errand({
      agents: [agent],
      hooks: {
        call: (name) => {
          if (silent && name === "heartbeat") throw brokenConnection();
        },
        committed: (commit) => {
          if (!writes(commit, "call_executing")) return;
          silent = true;
          world.clock.advance(LEASE_MS * 0.9);
        },
      },
    });
    const run = await first.start(agent, null);
    await until(() => first.worker?.active === 0);
    expect(outside.done).toEqual([]);
    const second = await takeover(world, [agent], run.runId);
    expect(await second.result(run.runId)).toBe("error outcome_unknown");
    expect(outside.done).toEqual([]);
  });

  test("L10 a replayable call is begun `maxExecutions` times and then given up", async () => {
    await using world = await open();
    const outside = new Outside();
    const hang = new Gate();
    const tool = outside.tool("mail", {
      replay: "safe",
      effect: "read_only",
      maxExecutions: 2,
      after: () => hang.wait(),
    });
    const agent = caller(tool);
    const first = await world.errand({ agents: [agent] });
    const run = await first.start(agent, null);
    await until(() => hang.arrivals === 1);
    first.worker?.kill();
    const second = await world.errand({ agents: [agent] });
    await world.passUntil(() => hang.arrivals === 2);
    second.worker?.kill();
    const third = await takeover(world, [agent], run.runId);
    expect(await third.result(run.runId)).toBe("error outcome_unknown");
    expect(outside.done).toHaveLength(2);
    hang.open();
  });

  test("L10 recorded calls come from the record: a crash repeats no finished call", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn(
      "agent",
      async (ctx) => [await ctx.tool(mail, { id: "a" }), await ctx.tool(mail, { id: "b" }), await ctx.now()],
      { tools: [mail] },
    );
    // Dies once for each commit of the run: before the reply to the first, the second, … is heard.
    const survivors = new Set<string>();
    const once = (commit: Commit): boolean => {
      if (commit.lane === null || writes(commit, "call_executing") || survivors.has(commit.operationId))
        return false;
      survivors.add(commit.operationId);
      return true;
    };
    let errand = await doomed(world, [agent], once);
    const run = await errand.start(agent, null);
    for (let deaths = 1; deaths < 10; deaths++) {
      await world.passUntil(() => errand.worker?.active === 0 && survivors.size >= deaths);
      if ((await errand.status(run.runId)).state === "ended") break;
      errand = await doomed(world, [agent], once);
    }
    expect(await errand.result(run.runId)).toEqual(["mail a", "mail b", expect.any(Number)]);
    expect(outside.done).toEqual(["mail:a", "mail:b"]);
    expect(survivors.size).toBeGreaterThanOrEqual(3);
  });

  test("L10 a claim whose reply was lost starts within one heartbeat", async () => {
    await using world = await open();
    let lost = 0;
    const agent = fn("agent", () => "done");
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        answered: (name, answer) => {
          if (name !== "claim" || (answer as unknown[]).length === 0 || lost > 0) return;
          lost += 1;
          throw brokenConnection();
        },
      },
    });
    const run = await errand.start(agent, null);
    await until(() => lost === 1);
    expect((await run.status()).state).toBe("running");
    await world.pass(HEARTBEAT_MS);
    expect(await run.result()).toBe("done");
    expect(await factsOf(errand, run.runId)).toHaveLength(3);
  });

  test("L10 recovery of an open relationship meets the same child, finished or not", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const mail = outside.tool("mail");
    const child = fn(
      "child",
      async (ctx) => {
        const sent = await ctx.tool(mail, { id: "a" });
        await gate.wait();
        return sent;
      },
      { tools: [mail] },
    );
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const first = await world.errand({ agents: [parent] });
    const run = await first.start(parent, null);
    await until(() => gate.arrivals === 1);
    first.worker?.kill();
    gate.open();
    const second = await takeover(world, [parent], run.runId);
    expect(await second.result(run.runId)).toBe("mail a");
    expect((await second.tree(run.runId)).children).toHaveLength(1);
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("L10 a child whose record is missing makes the call Indeterminate, and the parent goes on", async () => {
    await using world = await open();
    world.tampered = true;
    const child = fn("child", () => "done");
    const parent = fn(
      "parent",
      (ctx) => ctx.run(child, null).catch((error: unknown) => (error as ErrandError).details as never),
      { roster: [child] },
    );
    const errand = await world.errand({
      agents: [parent],
      hooks: { commit: (commit) => (commit.lane === null ? commit : { ...commit, create: [] }) },
    });
    const run = await errand.start(parent, null);
    await until(async () => (await run.status()).state === "waiting");
    await world.pass(HEARTBEAT_MS * 2);
    expect(await run.result()).toMatchObject({
      code: "outcome_unknown",
      details: { reason: "child_missing" },
    });
    const [relation] = await errand.store.listDelegations(errand.tenant, {
      parentRunId: run.runId,
      limit: 1,
    });
    expect(relation?.status).toBe("closed");
  });

  test("L9 a run whose first attempt failed before it could begin has its prompt in the second", async () => {
    await using world = await open();
    const model = scriptedModel(({ userText }) => `You said ${userText}.`);
    const sound = modelAgent({ name: "sound", instructions: "Repeat.", model });
    let opened = 0;
    const shaky = {
      ...sound,
      open() {
        if (opened++ === 0) throw new Error("not now");
        return sound.open();
      },
    };
    const errand = await world.errand({ agents: [shaky] });
    const run = await errand.start(shaky, "hello");
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("You said hello.");
    expect((await factsOfType(errand, run.runId, "attempt_started")).map((fact) => fact.attempt)).toEqual([
      1, 2,
    ]);
    expect((await errand.history(run.runId)).map((message) => message.role)).toEqual(["user", "assistant"]);
  });

  test("L10 a run whose every claim dies ends Indeterminate, never in silence", async () => {
    await using world = await open();
    const hang = new Gate();
    const agent = fn("agent", async () => {
      await hang.wait();
      return null;
    });
    let errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    // The first claim commits that the attempt began; the five after it commit nothing.
    for (let claims = 1; claims <= 6; claims++) {
      await world.passUntil(() => hang.arrivals === claims);
      errand.worker?.kill();
      errand = await world.errand({ agents: [agent] });
    }
    await world.passUntil(async () => (await errand.status(run.runId)).state === "ended");
    expect((await errand.end(run.runId)).kind).toBe("indeterminate");
    expect(hang.arrivals).toBe(6);
    hang.open();
  });
});
