import { expect, test } from "vitest";
import type { Json } from "../../src/rules/json.ts";
import type { Tool } from "../../src/runtime/ports/tool.ts";
import { fn } from "../support/agents.ts";
import { factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, onEachStore, until } from "../support/world.ts";

onEachStore("Claims of a worker", (open) => {
  test("L4 a heartbeat's late answer takes nothing from a run that was claimed again meanwhile", async () => {
    await using world = await open();
    const [child, tool, answer] = [new Gate(), new Gate(), new Gate()];
    const outside = new Outside();
    const send = outside.tool("send", { after: () => tool.wait() });
    const wait = outside.tool("wait", { after: () => child.wait() });
    const inner = fn("inner", (ctx) => ctx.tool(wait, { id: "c" }), { tools: [wait] });
    const agent = fn(
      "outer",
      async (ctx) => {
        await ctx.tool(wait, { id: "p" });
        await ctx.run(inner, null);
        return ctx.tool(send, { id: "a" });
      },
      { tools: [send, wait], roster: [inner] },
    );
    let slow = false;
    const errand = await world.errand({
      agents: [agent],
      hooks: { answered: (name) => (slow && name === "heartbeat" ? answer.wait() : undefined) },
    });
    const run = await errand.start(agent, null);
    await until(() => expect(outside.done).toEqual(["wait:p"]));
    slow = true;
    await world.pass(HEARTBEAT_MS);
    await until(() => expect(answer.arrivals).toBe(1));
    slow = false;
    // Between the store's answer and its arrival the run parks, is claimed again, and begins an effect.
    child.open();
    await until(() => expect(outside.done).toContain("send:a"));
    answer.open();
    await world.settled(20);
    tool.open();
    expect(await run.result()).toBe("send a");
    expect(await factsOfType(errand, run.runId, "call_indeterminate")).toEqual([]);
  });

  test("L10 a run that cannot be read is tried again at the pace of heartbeats, and holds nobody up", async () => {
    await using world = await open();
    let poisoned = "";
    let tries = 0;
    const agent = fn("any", (_ctx, input) => input);
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        answered: (name, answer) => {
          if (name !== "readLog" || poisoned === "") return;
          if (!(answer as readonly { runId: string }[]).some((row) => row.runId === poisoned)) return;
          tries += 1;
          throw new SyntaxError("a log entry is no JSON");
        },
      },
    });
    const host = await world.errand({ agents: [agent], worker: false });
    const run = await host.start(agent, 1, { delayMs: 10_000 });
    poisoned = run.runId;
    await world.pass(10_000);
    await world.settled(200);
    expect(tries).toBeGreaterThan(0);
    expect(tries).toBeLessThan(10);
    expect(await (await errand.start(agent, 2)).result()).toBe(2);
    poisoned = "";
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe(1);
  });

  test("L10 an agent that throws and a listener that throws end the run as failed, and nothing else", async () => {
    await using world = await open();
    const broken = { ...fn("broken", (_ctx, input) => input), open: throwing };
    const sound = fn("sound", (_ctx, input) => input);
    const errand = await world.errand({ agents: [broken, sound] });
    world.told.push = throwing;
    const run = await errand.start(broken, null);
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await errand.end(run.runId)).toMatchObject({ kind: "failed", error: { code: "runtime_error" } });
    expect(await (await errand.start(sound, 3)).result()).toBe(3);
  });

  test("L10 a tool whose schema fails on the second look is answered, and its run goes on", async () => {
    await using world = await open();
    let looks = 0;
    const tool = {
      ...new Outside().tool("odd"),
      parse: (input: Json) => (looks++ === 0 ? { ok: true as const, value: input } : throwing()),
    };
    const agent = fn("calls", (ctx) => ctx.tool(tool as Tool, { id: "a" }).then(String, () => "told"), {
      tools: [tool],
    });
    const errand = await world.errand({ agents: [agent] });
    expect(await (await errand.start(agent, null)).result()).toBe("told");
  });
});

function throwing(): never {
  throw new Error("broken");
}
