import { expect, test } from "vitest";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, LEASE_MS, onEachStore, until } from "../support/world.ts";

onEachStore("K6 recovery", (open) => {
  test("K6.1 a process that dies while the child is between steps: parent and child go on under the same ids", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const mail = outside.tool("mail");
    const child = fn(
      "child",
      async (ctx) => {
        const first = await ctx.tool(mail, { id: "a" });
        await gate.wait();
        return [first, await ctx.tool(mail, { id: "b" })];
      },
      { tools: [mail] },
    );
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const first = await world.errand({ agents: [parent] });
    const run = await first.start(parent, null);
    await until(() => gate.arrivals === 1);
    const before = await first.tree(run.runId);
    first.worker?.kill();
    gate.open();
    const second = await world.errand({ agents: [parent] });
    await world.pass(LEASE_MS + 2 * HEARTBEAT_MS);
    expect(await second.result(run.runId)).toEqual(["mail a", "mail b"]);
    const after = await second.tree(run.runId);
    expect(after.children.map((one) => one.runId)).toEqual(before.children.map((one) => one.runId));
    expect(outside.done).toEqual(["mail:a", "mail:b"]);
    expect(await factsOfType(second, run.runId, "attempt_started")).toHaveLength(1);
  });

  test("K6.1 a process that is stopped in good order hands its runs to the next at once", async () => {
    await using world = await open();
    const gate = new Gate();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn(
      "agent",
      async (ctx) => {
        const sent = await ctx.tool(mail, { id: "a" });
        await ctx.sleep(60_000);
        return sent;
      },
      { tools: [mail] },
    );
    const first = await world.errand({ agents: [agent] });
    const run = await first.start(agent, null);
    await until(async () => (await run.status()).state === "waiting");
    await first.close();
    const second = await world.errand({ agents: [agent] });
    await world.pass(60_000, 1_000);
    expect(await second.result(run.runId)).toBe("mail a");
    expect(outside.done).toEqual(["mail:a"]);
    gate.open();
  });

  test("K6.1 a process that is stopped while a tool runs lets it finish, records its result, and repeats nothing", async () => {
    await using world = await open();
    const gate = new Gate();
    const outside = new Outside();
    const mail = outside.tool("mail", { after: (id) => (id === "a" ? gate.wait() : undefined) });
    const agent = fn(
      "agent",
      async (ctx) => [await ctx.tool(mail, { id: "a" }), await ctx.tool(mail, { id: "b" })],
      {
        tools: [mail],
      },
    );
    const first = await world.errand({ agents: [agent] });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    const closing = first.close({ graceMs: 5_000 });
    gate.open();
    await closing;
    const second = await world.errand({ agents: [agent] });
    // It was handed back, so no lease has to run out.
    expect(await second.result(run.runId)).toEqual(["mail a", "mail b"]);
    expect(outside.done).toEqual(["mail:a", "mail:b"]);
  });

  test("K6.1 a process that is stopped while a tool hangs gives up after its grace time, and the next one takes over", async () => {
    await using world = await open();
    const gate = new Gate();
    const outside = new Outside();
    const mail = outside.tool("mail", { after: () => gate.wait() });
    const agent = fn("agent", (ctx) => ctx.tool(mail, { id: "a" }).catch(() => "unknown"), { tools: [mail] });
    const first = await world.errand({ agents: [agent] });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    const closing = first.close({ graceMs: 1_000 });
    await world.pass(1_000);
    await closing;
    const second = await world.errand({ agents: [agent] });
    expect(await second.result(run.runId)).toBe("unknown");
    expect(outside.done).toEqual(["mail:a"]);
    gate.open();
  });

  test("K6.1 a child that no worker can carry says so, and goes on once one can", async () => {
    await using world = await open();
    const child = fn("child", () => "done");
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const host = await world.errand({ agents: [parent], worker: false });
    const other = await world.errand({ agents: [fn("other", () => null)] });
    const run = await host.start(parent, null);
    await world.pass(HEARTBEAT_MS);
    expect((await run.status()).why).toMatch(/none of the 1 live workers has loaded parent@/);
    other.worker?.kill();
    await world.errand({ agents: [parent] });
    expect(await run.result()).toBe("done");
  });

  test("K6.2 a delegation whose child has vanished ends its call, and the same work can be driven again", async () => {
    await using world = await open();
    const child = fn("child", () => "done");
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    let vanish = true;
    world.tampered = true;
    const errand = await world.errand({
      agents: [parent],
      hooks: { commit: (commit) => (vanish && commit.lane !== null ? { ...commit, create: [] } : commit) },
    });
    const run = await errand.start(parent, null);
    await until(async () => (await run.status()).state === "waiting");
    vanish = false;
    await world.pass(2 * HEARTBEAT_MS);
    const end = await errand.end(run.runId);
    expect(end).toMatchObject({ kind: "failed", error: { code: "CALL_FAILED" } });
    const [given] = await factsOfType(errand, run.runId, "call_indeterminate");
    expect(given).toMatchObject({ reason: "child_missing" });
    expect(await errand.run(parent, null)).toBe("done");
  });

  test("K6.3 with one slot, the run of a dead worker is claimed again after its lease, and the next follows", async () => {
    await using world = await open();
    const gate = new Gate();
    const order: string[] = [];
    const agent = fn("agent", async (_ctx, name) => {
      order.push(name as string);
      if (name === "first") await gate.wait();
      return name;
    });
    const worker = { concurrency: 1 };
    const one = await world.errand({ agents: [agent], worker });
    const first = await one.start(agent, "first");
    await until(() => gate.arrivals === 1);
    const second = await one.start(agent, "second");
    one.worker?.kill();
    const two = await world.errand({ agents: [agent], worker });
    gate.open();
    await until(async () => (await two.status(second.runId)).state === "ended");
    expect((await two.status(first.runId)).state).toBe("running");
    await world.pass(LEASE_MS + 2 * HEARTBEAT_MS);
    expect(await two.result(first.runId)).toBe("first");
    expect(order).toEqual(["first", "second", "first"]);
  });

  test("K6.4 a restart between a wait and its answer, three levels deep: the path is rebuilt, no first step repeats", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const define = () => {
      const g = fn(
        "g",
        async (ctx) => [await ctx.tool(mail, { id: "g" }), await ctx.ask({ prompt: "Which?" })],
        {
          tools: [mail],
          mayAsk: true,
        },
      );
      const c = fn("c", async (ctx) => [await ctx.tool(mail, { id: "c" }), await ctx.run(g, null)], {
        tools: [mail],
        roster: [g],
      });
      return fn("p", async (ctx) => [await ctx.tool(mail, { id: "p" }), await ctx.run(c, null)], {
        tools: [mail],
        roster: [c],
      });
    };
    const agents = [define()];
    const first = await world.errand({ agents });
    const run = await first.start(agents[0]!, null);
    await until(async () => (await run.status()).state === "awaiting");
    first.worker?.kill();
    const second: Errand = await world.errand({ agents: [define()] });
    await world.pass(LEASE_MS * 2);
    await second.resume(run.runId, "this");
    expect(await second.result(run.runId)).toEqual(["mail p", ["mail c", ["mail g", "this"]]]);
    expect(outside.done).toEqual(["mail:p", "mail:c", "mail:g"]);
  });
});
