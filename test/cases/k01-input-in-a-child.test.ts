import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { type JsonAgent, fn, secretAsker } from "../support/agents.ts";
import { factsOfType } from "../support/facts.ts";
import { Outside } from "../support/outside.ts";
import { LEASE_MS, onStores, until } from "../support/world.ts";

const asker = fn("g", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });

function above(name: string, below: JsonAgent): JsonAgent {
  return fn(name, (ctx, input) => ctx.run(below, input), { roster: [below] });
}

async function oneTicket(errand: Errand, rootRunId: string) {
  await until(async () => (await errand.status(rootRunId)).state === "awaiting");
  const tickets = await errand.tickets({ rootRunId });
  expect(tickets).toHaveLength(1);
  return tickets[0]!;
}

onStores("K1 input in a child", { anyWorker: true }, (open) => {
  test("K1.1 an answer that is sent two levels up reaches the run that asked, which runs once", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail", { approval: true });
    const g = fn("g", (ctx, id) => ctx.tool(mail, { id: id as string }), { tools: [mail] });
    const p = above("p", above("c", g));
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, "a");
    const ticket = await oneTicket(errand, run.runId);
    expect(ticket.kind).toBe("approval");
    await errand.resume(run.runId, { approved: true });
    expect(await run.result()).toBe("mail a");
    expect(outside.done).toEqual(["mail:a"]);
    const c = (await run.tree()).children[0]!;
    for (const one of [run.runId, c.runId, c.children[0]!.runId]) {
      expect(await factsOfType(errand, one, "attempt_started")).toHaveLength(1);
      expect((await errand.status(one)).end?.kind).toBe("completed");
    }
  });

  test("K1.2 two children of one name ask at once: each gets its own answer", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail", { approval: true });
    const reviewer = fn("reviewer", (ctx, id) => ctx.tool(mail, { id: id as string }), { tools: [mail] });
    const p = fn(
      "p",
      (ctx, input) =>
        ctx.run(reviewer, input).catch((error: { details: { message: string } }) => error.details.message),
      { roster: [reviewer] },
    );
    const errand = await world.errand({ agents: [p] });
    const first = await errand.start(p, "first");
    const second = await errand.start(p, "second");
    const [one, two] = [await oneTicket(errand, first.runId), await oneTicket(errand, second.runId)];
    expect(one.ticketId).not.toBe(two.ticketId);
    await errand.resume(one.ticketId, { approved: true });
    await errand.resume(two.ticketId, { approved: false, reason: "not this one" });
    expect(await first.result()).toBe("mail first");
    expect(await second.result()).toContain("not this one");
    expect(outside.done).toEqual(["mail:first"]);
  });

  test("K1.3 a child that is resumed directly wakes its parent by its committed outcome", async () => {
    await using world = await open();
    const p = above("p", asker);
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, null);
    const { runId } = await oneTicket(errand, run.runId);
    expect(runId).not.toBe(run.runId);
    await errand.resume(runId, "this");
    expect(await run.result()).toBe("this");
  });

  test("K1.4 one nested wait is one ticket, at every height", async () => {
    await using world = await open();
    const p = above("p", above("c", asker));
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, null);
    const ticket = await oneTicket(errand, run.runId);
    expect(await errand.tickets()).toEqual([ticket]);
    expect(await errand.tickets({ all: true })).toHaveLength(1);
  });

  test("K1.5 finished siblings of an awaiting child do not run again when it is resumed", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const p = fn(
      "p",
      (ctx) => Promise.all([ctx.tool(mail, { id: "a" }), ctx.tool(mail, { id: "b" }), ctx.run(asker, null)]),
      { tools: [mail], roster: [asker] },
    );
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, null);
    await oneTicket(errand, run.runId);
    await errand.resume(run.runId, "this");
    expect(await run.result()).toEqual(["mail a", "mail b", "this"]);
    expect(outside.done).toEqual(["mail:a", "mail:b"]);
    expect(await errand.effects(run.runId)).toMatchObject([
      { executions: 1, outcome: "done" },
      { executions: 1, outcome: "done" },
    ]);
  });

  test("K1.6 what is resumed is the stored call: the model that now says otherwise is not asked", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail", { approval: true });
    let mood = "before";
    const model = scriptedModel([
      () => ({ calls: [{ tool: "mail", input: { id: mood } }] }),
      ({ toolResults }) => `sent: ${JSON.stringify(toolResults[0]?.value)}`,
    ]);
    const agent = modelAgent({ name: "writer", instructions: "Write.", model, tools: [mail] });
    const errand = await world.errand({ agents: [agent], worker: {} });
    const run = await errand.start(agent, "go");
    await oneTicket(errand, run.runId);
    mood = "after";
    // Also after a restart, from the record alone.
    errand.worker?.kill();
    const next = await world.errand({ agents: [agent] });
    await next.resume(run.runId, { approved: true });
    await world.passUntil(async () => (await next.status(run.runId)).state === "ended");
    expect(await next.result(run.runId)).toBe(`sent: "mail before"`);
    expect(outside.done).toEqual(["mail:before"]);
    expect(model.calls).toBe(2);
  });

  test("K1.7 an answer without a ticket's id, with two open, names both and changes nothing", async () => {
    await using world = await open();
    const one = secretAsker("one");
    const two = secretAsker("two");
    const p = fn("p", (ctx) => Promise.all([ctx.run(one, null), ctx.run(two, null)]), { roster: [one, two] });
    // The parent's worker is gone, so both children of its parallel batch wait before it can say no.
    const errand = await world.errand({
      agents: [p],
      worker: { concurrency: 1 },
      hooks: { committed: (commit) => void (commit.create.length === 2 && errand.worker?.kill()) },
    });
    const run = await errand.start(p, null);
    const below = await world.errand({ agents: [one, two] });
    await world.passUntil(async () => (await below.tickets()).length === 2);
    const ids = (await below.tickets()).map((ticket) => ticket.ticketId);
    const before = await below.store.readLog(below.tenant, { rootRunId: run.runId }, 0, 100);
    await expect(below.resume(run.runId, "this")).rejects.toMatchObject({
      code: "TICKET_REQUIRED",
      message: expect.stringMatching(new RegExp(`${ids[0]}.*${ids[1]}`)),
      details: { ticketIds: ids },
    });
    expect(await below.store.readLog(below.tenant, { rootRunId: run.runId }, 0, 100)).toEqual(before);
    expect(await below.tickets()).toHaveLength(2);
    // Each child has one, so there the run is enough.
    await below.resume((await below.tickets())[0]!.runId, "this");
    await until(async () => (await below.tickets()).length === 1);
  });

  test("K1.8 a child that waits in its second step goes on there: its first step has one record", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const c = fn(
      "c",
      async (ctx) => [await ctx.tool(mail, { id: "first" }), await ctx.ask({ prompt: "Then?" })],
      {
        tools: [mail],
        mayAsk: true,
      },
    );
    const p = above("p", c);
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, null);
    const { runId } = await oneTicket(errand, run.runId);
    await errand.resume(run.runId, "second");
    expect(await run.result()).toEqual(["mail first", "second"]);
    expect(await factsOfType(errand, runId, "call_executing")).toHaveLength(1);
    expect((await factsOfType(errand, runId, "step_published")).map((fact) => fact.step)).toEqual([1, 2]);
    expect(outside.done).toEqual(["mail:first"]);
  });

  test("K1.9 an approved call runs in the child that made it, with a tool that only it has", async () => {
    await using world = await open();
    const outside = new Outside();
    const agents: string[] = [];
    const mail = outside.tool("mail", { approval: true });
    const seen = {
      ...mail,
      run: (...args: Parameters<typeof mail.run>) => (agents.push(args[1].agent), mail.run(...args)),
    };
    const c = fn("c", (ctx) => ctx.tool(seen, { id: "a" }), { tools: [seen] });
    const p = above("p", c);
    const errand = await world.errand({ agents: [p] });
    const run = await errand.start(p, null);
    await oneTicket(errand, run.runId);
    await errand.resume(run.runId, { approved: true });
    expect(await run.result()).toBe("mail a");
    expect(agents).toEqual(["c"]);
    expect(await errand.effects(run.runId)).toEqual([]);
  });

  test("K1.11 the same agents in new objects carry on what was waiting", async () => {
    await using world = await open();
    const define = () =>
      above(
        "p",
        fn("c", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true }),
      );
    const before = define();
    const first = await world.errand({ agents: [before], worker: {} });
    const run = await first.start(before, null);
    await oneTicket(first, run.runId);
    await first.close();
    const second = await world.errand({ agents: [define()] });
    await second.resume(run.runId, "this");
    await world.pass(LEASE_MS);
    expect(await second.result(run.runId)).toBe("this");
  });
});
