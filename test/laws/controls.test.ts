import { expect, test } from "vitest";
import { fn, secretAsker } from "../support/agents.ts";
import { factsOf, factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onEachStore, until } from "../support/world.ts";

onEachStore("Controls", (open) => {
  test("L33 a carrier that asked is not asked again while its ticket is open, whatever wakes the run", async () => {
    await using world = await open();
    const asker = secretAsker("far");
    const errand = await world.errand({ agents: [asker] });
    const run = await errand.start(asker, null);
    const state = async () => (await run.status()).state;
    await until(async () => expect(await state()).toBe("awaiting"));
    const [asked] = await errand.tickets();

    await errand.pause(run.runId);
    await until(async () => expect(await state()).toBe("paused"));
    await errand.continue(run.runId);
    await until(async () => expect(await state()).toBe("awaiting"));

    expect(await errand.tickets({ all: true })).toEqual([asked]);
    await errand.resume(asked!.ticketId, "blue");
    expect(await run.result()).toBe("blue");
  });

  test("L11 a call whose approval came together with a cancel never started, and says so", async () => {
    await using world = await open();
    const outside = new Outside();
    const send = outside.tool("send", { approval: true });
    const agent = fn("sender", (ctx) => ctx.tool(send, { id: "a" }), { tools: [send] });
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await until(async () => expect(await errand.tickets()).toHaveLength(1));
    const [ticket] = await errand.tickets();

    errand.worker!.kill();
    await errand.resume(ticket!.ticketId, { approved: true });
    await run.cancel();
    const next = await world.errand({ agents: [agent] });
    await world.passUntil(async () => (await run.status()).state === "ended");

    expect(await next.end(run.runId)).toMatchObject({ kind: "canceled" });
    expect(outside.done).toEqual([]);
    expect(await factsOfType(next, run.runId, "call_executing")).toEqual([]);
    expect(await factsOfType(next, run.runId, "call_indeterminate")).toMatchObject([
      { reason: "not_started" },
    ]);
    expect(await next.effects(run.runId)).toEqual([]);
  });

  test("L33 a run between that hears its child's end instead of its resumption still tells its parent to go on", async () => {
    await using world = await open();
    const slow = new Gate();
    const outside = new Outside();
    const work = outside.tool("work", { after: () => slow.wait() });
    const deep = fn("deep", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
    const between = fn(
      "between",
      async (ctx) => {
        await ctx.run(deep, null);
        return ctx.tool(work, { id: "a" });
      },
      { roster: [deep], tools: [work] },
    );
    const root = fn("root", (ctx) => ctx.run(between, null), { roster: [between] });
    const errand = await world.errand({ agents: [root] });
    const run = await errand.start(root, null);
    await until(async () => expect((await run.status()).state).toBe("awaiting"));
    await errand.resume(run.runId, "this one");
    await until(() => expect(outside.done).toEqual(["work:a"]));
    await until(async () => expect((await run.status()).state).toBe("waiting"));
    expect((await factsOf(errand, run.runId)).map((fact) => fact.type)).toContain("call_resumed");
    slow.open();
    expect(await run.result()).toBe("work a");
  });

  test.each(["pause and continue", "continue"] as const)(
    "L4 a run that starts later starts no sooner for a %s",
    async (controls) => {
      await using world = await open();
      const agent = fn("later", (ctx) => ctx.now());
      const errand = await world.errand({ agents: [agent] });
      const due = world.clock.now() + 60_000;
      const run = await errand.start(agent, null, { delayMs: 60_000 });
      if (controls !== "continue") {
        await errand.pause(run.runId);
        await world.passUntil(async () => (await run.status()).state === "paused");
      }
      await errand.continue(run.runId);
      await world.pass(5_000);
      expect((await run.status()).state).not.toBe("ended");
      await world.passUntil(async () => (await run.status()).state === "ended");
      expect(await run.result()).toBeGreaterThanOrEqual(due);
    },
  );
});
