import { expect, test } from "vitest";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { type JsonAgent, fn, secretAsker } from "../support/agents.ts";
import { factsOf, factsOfType } from "../support/facts.ts";
import { Gate, Outside } from "../support/outside.ts";
import { onStores, until } from "../support/world.ts";

const echo = fn("echo", (_ctx, input) => input);
const asks = fn("asks", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
const mayAskBelow = fn("may-ask-below", (_ctx, input) => input, { roster: [asks] });

/** A parent that makes all its calls at once. */
function both(...targets: readonly JsonAgent[]) {
  return fn("both", (ctx) => Promise.all(targets.map((one, at) => ctx.run(one, at))), {
    roster: [...new Set(targets)],
  });
}

async function modeOf(errand: Errand, runId: string): Promise<string | undefined> {
  return (await factsOfType(errand, runId, "step_published"))[0]?.mode;
}

onStores("Parallel delegation", { anyWorker: true }, (open) => {
  test("L18 delegations that can only end are all opened in one commit and run at the same time", async () => {
    await using world = await open();
    const gate = new Gate();
    const slow = fn("slow", async (_ctx, input) => {
      await gate.wait();
      return input;
    });
    const parent = both(slow, slow, slow);
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await until(() => expect(gate.arrivals).toBe(3));
    const opened = await factsOfType(errand, run.runId, "delegation_opened");
    const executing = await factsOfType(errand, run.runId, "call_executing");
    expect(new Set([...opened, ...executing].map((fact) => fact.seq)).size).toBe(1);
    expect(opened).toHaveLength(3);
    gate.open();
    expect(await run.result()).toEqual([0, 1, 2]);
    expect(await modeOf(errand, run.runId)).toBe("parallel");
  });

  test.each([
    ["a target that may ask", [echo, asks]],
    ["a target whose roster reaches one that may ask", [echo, mayAskBelow]],
    [
      "a secret asker in a roster of a roster",
      [echo, fn("top", (_ctx, input) => input, { roster: [mayAskBelow] })],
    ],
  ] as const)(
    "L18 %s makes the batch run in call order: it is computed, not believed",
    async (_what, targets) => {
      await using world = await open();
      const parent = both(...targets);
      const errand = await world.errand({ agents: [parent] });
      const run = await errand.start(parent, null);
      await until(async () => ["ended", "awaiting"].includes((await run.status()).state));
      expect(await modeOf(errand, run.runId)).toBe("in_order");
    },
  );

  test("L18 a target whose tool may need approval makes the batch run in call order", async () => {
    await using world = await open();
    const guarded = new Outside().tool("mail", { approval: ({ id }) => id === "boss" });
    const mailer = fn("mailer", (ctx) => ctx.tool(guarded, { id: "a" }), { tools: [guarded] });
    const parent = both(echo, mailer);
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    expect(await run.result()).toEqual([0, "mail a"]);
    expect(await modeOf(errand, run.runId)).toBe("in_order");
  });

  test("L18 a delegation beside an ordinary tool runs in call order", async () => {
    await using world = await open();
    const look = new Outside().tool("look", { replay: "safe", effect: "read_only" });
    const parent = fn("mixed", (ctx) => Promise.all([ctx.tool(look, { id: "a" }), ctx.run(echo, 1)]), {
      tools: [look],
      roster: [echo],
    });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    expect(await run.result()).toEqual(["look a", 1]);
    expect(await modeOf(errand, run.runId)).toBe("in_order");
  });

  test("L18 in call order a delegation behind an unfinished one has not started", async () => {
    await using world = await open();
    const parent = both(asks, echo);
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await until(async () => (await errand.tickets()).length === 1);
    await world.settled();
    expect((await run.tree()).children.map((child) => child.agent)).toEqual(["asks"]);
    await errand.resume(run.runId, "this");
    expect(await run.result()).toEqual(["this", 1]);
  });

  test("L18 all of a batch are admitted in one commit, or none of it runs in parallel", async () => {
    await using world = await open();
    const parent = fn("many", (ctx) => Promise.all([0, 1, 2].map((at) => ctx.run(echo, at))), {
      roster: [echo],
      limits: { maxParallelChildren: 2 },
    });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    expect(await run.result()).toEqual([0, 1, 2]);
    expect(await modeOf(errand, run.runId)).toBe("in_order");
  });

  test("L18 ordinary tools run in parallel only if each declares it", async () => {
    await using world = await open();
    for (const second of [true, false]) {
      const gate = new Gate();
      const outside = new Outside();
      const after = () => gate.wait();
      const one = outside.tool("one", { parallel: true, after });
      const two = outside.tool("two", { parallel: second, after });
      const caller = fn(
        `caller-${second}`,
        (ctx) => Promise.all([ctx.tool(one, { id: "a" }), ctx.tool(two, { id: "b" })]),
        { tools: [one, two] },
      );
      const errand = await world.errand({ agents: [caller] });
      const run = await errand.start(caller, null);
      await until(() => gate.arrivals === (second ? 2 : 1));
      await world.settled();
      expect(outside.done).toEqual(second ? ["one:a", "two:b"] : ["one:a"]);
      gate.open();
      expect(await run.result()).toEqual(["one a", "two b"]);
      expect(await modeOf(errand, run.runId)).toBe(second ? "parallel" : "in_order");
    }
  });

  test("L18 a parallel child that awaits after all ends the run indeterminate: siblings keep results, no ticket is merged", async () => {
    await using world = await open();
    const liar = secretAsker("liar");
    const parent = both(echo, liar);
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    expect((await errand.end(run.runId)).kind).toBe("indeterminate");
    expect(await modeOf(errand, run.runId)).toBe("parallel");
    const facts = await factsOf(errand, run.runId);
    expect(facts.filter((fact) => fact.type === "call_completed")).toMatchObject([
      { index: 0, outcome: { ok: true, value: 0 } },
    ]);
    expect(facts.filter((fact) => fact.type === "call_indeterminate")).toMatchObject([
      { index: 1, reason: "unexpected_await" },
    ]);
    const intents = facts.filter((fact) => fact.type === "delegation_cancel_requested");
    expect(intents).toHaveLength(1);
    expect(facts.filter((fact) => fact.type === "call_awaiting" || fact.type === "ticket_opened")).toEqual(
      [],
    );
    const [, child] = (await run.tree()).children;
    expect((await errand.end(child!.runId)).kind).toBe("canceled");
    expect(await errand.tickets()).toEqual([]);
  });

  test("L18 with the policy `continue` the run goes on with an Indeterminate call, and the late result is discarded", async () => {
    await using world = await open();
    const liar = secretAsker("liar");
    const gate = new Gate();
    const parent = fn(
      "tolerant",
      async (ctx) => {
        const [first, second] = await Promise.allSettled([ctx.run(echo, 0), ctx.run(liar, null)]);
        await gate.wait();
        const third = await ctx.run(echo, 2);
        const code =
          second.status === "rejected" ? (second.reason as { details: { code: string } }).details.code : "";
        return [first.status, code, third];
      },
      { roster: [echo, liar], onUnexpectedAwait: "continue" },
    );
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await until(() => gate.arrivals === 1);
    // The canceled child's end reaches the parent between two of its steps.
    await until(async () => (await run.tree()).children.every((child) => child.state === "ended"));
    gate.open();
    expect(await run.result()).toEqual(["fulfilled", "outcome_unknown", 2]);
    expect(await factsOfType(errand, run.runId, "child_result_discarded")).toHaveLength(1);
    const relations = await errand.store.listDelegations(errand.tenant, { parentRunId: run.runId, limit: 9 });
    expect(relations.map((one) => one.status)).toEqual(["closed", "closed", "closed"]);
    const inbox = await errand.store.listInbox(errand.tenant, run.runId);
    expect(inbox.map((row) => row.status).toSorted()).toEqual(["consumed", "consumed", "discarded"]);
  });
});
