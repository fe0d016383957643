import { expect, test } from "vitest";
import type { Commit } from "../../src/runtime/ports/store.ts";
import type { RunHandle } from "../../src/surfaces/library/run-handle.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { type JsonAgent, fn } from "../support/agents.ts";
import { factTypes, factsOf, factsOfType, laneFacts } from "../support/facts.ts";
import { Gate } from "../support/outside.ts";
import { type World, onStores, until } from "../support/world.ts";

const SCHEMA = { type: "object", properties: { color: { type: "string" } }, required: ["color"] } as const;

/** P → C → G, where G asks. */
function family(grandchild: JsonAgent): JsonAgent {
  const child = fn("c", (ctx, input) => ctx.run(grandchild, input), { roster: [grandchild] });
  return fn("p", (ctx, input) => ctx.run(child, input), { roster: [child] });
}

const asker = fn("g", (ctx) => ctx.ask({ prompt: "Which color?", schema: SCHEMA }), { mayAsk: true });

async function awaiting(errand: Errand, run: RunHandle<unknown>): Promise<void> {
  await until(async () => (await run.status()).state === "awaiting");
  expect(await errand.tickets()).toHaveLength(1);
}

async function started(world: World, agent: JsonAgent, seen: Commit[] = []) {
  const errand = await world.errand({
    agents: [agent],
    hooks: { committed: (commit, { kind }) => void (kind === "committed" && seen.push(commit)) },
  });
  const run = await errand.start(agent, null);
  await awaiting(errand, run);
  const c = (await run.tree()).children[0]!;
  const g = c.children[0]!;
  return { errand, run, c, g, ticket: (await errand.tickets())[0]! };
}

onStores("Tickets", { anyWorker: true }, (open) => {
  test("L33 an await goes up one level a commit, with one ticket that the deepest run owns", async () => {
    await using world = await open();
    const seen: Commit[] = [];
    const { errand, run, c, g, ticket } = await started(world, family(asker), seen);
    expect(ticket).toMatchObject({
      runId: g.runId,
      rootRunId: run.runId,
      prompt: "Which color?",
      status: "open",
    });
    expect(await errand.tickets({ rootRunId: run.runId })).toHaveLength(1);
    expect(await errand.tickets({ runId: run.runId })).toEqual([]);

    // G's await, the envelope to C and C's wake are one commit; so are C's call, its wait, and the envelope to P.
    const waits = seen.filter((commit) => commit.deliver.some((one) => one.kind === "wait"));
    expect(waits.map((commit) => [commit.lane?.runId, commit.deliver[0]?.parentRunId])).toEqual([
      [g.runId, c.runId],
      [c.runId, run.runId],
    ]);
    expect(laneFacts(waits[0]!).map((fact) => fact.type)).toEqual([
      "attempt_started",
      "step_published",
      "call_awaiting",
      "ticket_opened",
      "parked",
    ]);
    const [, above] = waits.map((commit) => laneFacts(commit));
    expect(above?.map((fact) => fact.type)).toEqual(expect.arrayContaining(["call_awaiting", "parked"]));
    expect(above?.some((fact) => fact.type === "ticket_opened")).toBe(false);
    expect(
      (await factsOf(errand, run.runId)).findLast((fact) => fact.type === "call_awaiting"),
    ).toMatchObject({
      ticketId: ticket.ticketId,
    });
    for (const one of [run.runId, c.runId, g.runId]) {
      const { state, wait } = await errand.status(one);
      expect([state, wait?.on === "ticket" && wait.ticketId]).toEqual(["awaiting", ticket.ticketId]);
    }
  });

  test.each(["the root", "the child between", "the run that asked", "the ticket"] as const)(
    "L33 the ticket is answered at %s, once, and every level goes on",
    async (at) => {
      await using world = await open();
      const { errand, run, c, g, ticket } = await started(world, family(asker));
      const target = {
        "the root": run.runId,
        "the child between": c.runId,
        "the run that asked": g.runId,
        "the ticket": ticket.ticketId,
      }[at];
      expect(await errand.resume(target, { color: "blue" })).toEqual({ runId: g.runId, repeated: false });
      expect(await run.result()).toEqual({ color: "blue" });
      expect(await errand.tickets()).toEqual([]);
      for (const one of [run.runId, c.runId, g.runId]) {
        expect(await factsOfType(errand, one, "attempt_started")).toHaveLength(1);
        expect(await factsOfType(errand, one, "call_completed")).toHaveLength(1);
      }
    },
  );

  test("L33 the ticket can be answered from the first commit on, before the wait has come up", async () => {
    await using world = await open();
    const hold = new Gate();
    const agent = family(asker);
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        // Ancestors cannot write down that they wait until the gate opens.
        commit: async (commit) => {
          if (
            laneFacts(commit).some((fact) => fact.type === "call_awaiting") &&
            commit.openTickets.length === 0
          )
            await hold.wait();
        },
      },
    });
    const run = await errand.start(agent, null);
    await until(async () => (await errand.tickets()).length === 1);
    await until(() => hold.arrivals === 1);
    const [ticket] = await errand.tickets();
    await errand.resume(ticket!.ticketId, { color: "red" });
    await until(async () => (await errand.status(ticket!.runId)).state === "ended");
    hold.open();
    expect(await run.result()).toEqual({ color: "red" });
  });

  test("L33 a wrong kind, run, schema or id leaves the ticket open and writes nothing", async () => {
    await using world = await open();
    const { errand, run, g, ticket } = await started(world, family(asker));
    const before = (await errand.log(g.runId)).length;
    const answer = { color: "blue" };
    const wrong = [
      [() => errand.resume(ticket.ticketId, answer, { kind: "approval" }), "TICKET_MISMATCH"],
      [() => errand.resume(ticket.ticketId, answer, { runId: run.runId }), "TICKET_MISMATCH"],
      [() => errand.resume(ticket.ticketId, { colour: "blue" }), "TICKET_ANSWER_INVALID"],
      [() => errand.resume(ticket.ticketId, null), "TICKET_ANSWER_INVALID"],
      [() => errand.resume(`tkt_${"0".repeat(32)}`, answer), "NOT_FOUND"],
      [() => errand.resume("tkt_blue", answer), "INVALID_ID"],
    ] as const;
    for (const [attempt, code] of wrong) await expect(attempt()).rejects.toMatchObject({ code });
    expect((await errand.log(g.runId)).length).toBe(before);
    expect(await errand.tickets()).toMatchObject([{ ticketId: ticket.ticketId, status: "open" }]);
    await errand.resume(run.runId, answer);
    expect(await run.result()).toEqual(answer);
  });

  test("L33 after its deadline a ticket takes no answer; the call says so and every level goes on", async () => {
    await using world = await open();
    const late = fn(
      "g",
      (ctx) =>
        ctx
          .ask({ prompt: "Soon?", deadlineMs: 10_000 })
          .catch((error: { details: { code: string } }) => error.details.code),
      { mayAsk: true },
    );
    const { errand, run, ticket } = await started(world, family(late));
    expect(ticket.deadlineAt).toBe(world.clock.now() + 10_000);
    world.clock.advance(10_000);
    await expect(errand.resume(ticket.ticketId, "now")).rejects.toMatchObject({ code: "TICKET_CLOSED" });
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("ticket_expired");
    expect(await errand.tickets({ all: true })).toMatchObject([{ status: "closed" }]);
  });

  test("L33 a decision that came before the deadline stands, though its run was looking when the time ran out", async () => {
    await using world = await open();
    const agent = fn(
      "asker",
      (ctx) => ctx.ask({ prompt: "Soon?", deadlineMs: 10_000 }).catch(() => "expired"),
      { mayAsk: true },
    );
    const reading = new Gate();
    let isHeld = false;
    const errand = await world.errand({
      agents: [agent],
      hooks: {
        answered: async (name) => {
          if (name === "readPending" && isHeld) await reading.wait();
        },
      },
    });
    const host = await world.errand({ agents: [agent], worker: false });
    const run = await errand.start(agent, null);
    await awaiting(errand, run);
    isHeld = true;
    await host.continue(run.runId);
    await until(() => reading.arrivals === 1);
    await world.pass(9_999);
    expect(await host.resume(run.runId, "in time")).toMatchObject({ repeated: false });
    await world.pass(1);
    isHeld = false;
    reading.open();
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("in time");
  });

  test("L33 the first decision wins; its exact repeat has the same receipt, wherever it is sent", async () => {
    await using world = await open();
    const gate = new Gate();
    const g = fn(
      "g",
      async (ctx) => {
        const answer = await ctx.ask({ prompt: "Which color?", schema: SCHEMA });
        await gate.wait();
        return answer;
      },
      { mayAsk: true },
    );
    const { errand, run, ticket } = await started(world, family(g));
    const decision = { decisionId: "d1", by: "ada" };
    const first = await errand.resume(run.runId, { color: "blue" }, decision);
    expect(first).toEqual({ runId: ticket.runId, repeated: false });
    await until(() => gate.arrivals === 1);
    for (const target of [ticket.ticketId, ticket.runId, run.runId]) {
      expect(await errand.resume(target, { color: "blue" }, decision)).toEqual({ ...first, repeated: true });
    }
    const other = [
      errand.resume(ticket.ticketId, { color: "red" }, decision),
      errand.resume(ticket.ticketId, { color: "blue" }, { decisionId: "d2" }),
    ];
    for (const one of await Promise.allSettled(other)) {
      expect(one).toMatchObject({ status: "rejected", reason: { code: "TICKET_DECIDED" } });
    }
    expect(await factsOfType(errand, ticket.runId, "ticket_decided")).toHaveLength(1);
    gate.open();
    expect(await run.result()).toEqual({ color: "blue" });
  });

  test("L33 the repeat of a decision never answers the next question", async () => {
    await using world = await open();
    const g = fn("g", async (ctx) => [await ctx.ask({ prompt: "One?" }), await ctx.ask({ prompt: "Two?" })], {
      mayAsk: true,
    });
    const { errand, run, ticket } = await started(world, family(g));
    await errand.resume(run.runId, "yes", { decisionId: "d1" });
    await until(async () => (await errand.tickets())[0]?.prompt === "Two?");
    // The reply was lost, so the host sends it again, by the run that it knows.
    expect(await errand.resume(run.runId, "yes", { decisionId: "d1" })).toEqual({
      runId: ticket.runId,
      repeated: true,
    });
    expect(await errand.tickets()).toMatchObject([{ prompt: "Two?", status: "open" }]);
    await until(async () => {
      const { wait } = await run.status();
      return wait?.on === "ticket" && wait.ticketId !== ticket.ticketId;
    });
    await errand.resume(run.runId, "no", { decisionId: "d2" });
    expect(await run.result()).toEqual(["yes", "no"]);
  });

  test("L33 two decisions at the same instant: one stands, the other learns which", async () => {
    await using world = await open();
    const { errand, run, ticket } = await started(world, family(asker));
    const decide = (color: string) => errand.resume(ticket.ticketId, { color }, { decisionId: color });
    const settled = await Promise.allSettled([decide("blue"), decide("red")]);
    expect(settled.map((one) => one.status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const [lost] = settled.filter((one) => one.status === "rejected");
    const winner = settled[0]?.status === "fulfilled" ? "blue" : "red";
    expect(lost?.reason).toMatchObject({ code: "TICKET_DECIDED" });
    expect(String(lost?.reason)).toContain(winner);
    expect(await run.result()).toEqual({ color: winner });
  });

  test("L33 a child that asks, goes on, works and asks again is one child whose parent follows", async () => {
    await using world = await open();
    const gate = new Gate();
    const g = fn(
      "g",
      async (ctx) => {
        const first = await ctx.ask({ prompt: "One?" });
        const second = await ctx.ask({ prompt: "Two?" });
        await gate.wait();
        await ctx.now();
        return [first, second];
      },
      { mayAsk: true },
    );
    const { errand, run, c } = await started(world, family(g));
    await errand.resume(run.runId, 1);
    await until(async () => (await errand.tickets())[0]?.prompt === "Two?");
    await errand.resume(run.runId, 2);
    await until(() => gate.arrivals === 1);
    await until(async () => (await errand.status(c.runId)).state === "waiting");
    await until(async () => (await run.status()).state === "waiting");
    gate.open();
    expect(await run.result()).toEqual([1, 2]);
    expect((await run.tree()).children).toHaveLength(1);
    expect(await factsOfType(errand, run.runId, "attempt_failed")).toEqual([]);
  });

  test("L33 the end of an awaiting run closes its ticket, and a late answer is refused as closed", async () => {
    await using world = await open();
    const { errand, run, g, ticket } = await started(world, family(asker));
    await run.cancel({ reason: "not wanted" });
    expect((await errand.end(run.runId)).kind).toBe("canceled");
    expect((await errand.end(g.runId)).kind).toBe("canceled");
    const facts = (await factTypes(errand, g.runId)).length;
    await expect(errand.resume(ticket.ticketId, { color: "blue" })).rejects.toMatchObject({
      code: "TICKET_CLOSED",
    });
    await expect(errand.resume(run.runId, { color: "blue" })).rejects.toMatchObject({
      code: "TICKET_REQUIRED",
    });
    expect((await factTypes(errand, g.runId)).length).toBe(facts);
    expect(await errand.tickets()).toEqual([]);
  });

  test("L33 a pause holds a decision and a delivery until the run goes on, at each level for itself", async () => {
    await using world = await open();
    const gate = new Gate();
    const child = fn(
      "child",
      async (ctx) => {
        await gate.wait();
        return ctx.ask({ prompt: "Which?" });
      },
      { mayAsk: true },
    );
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    const stateOf = async (runId: string) => (await errand.status(runId)).state;
    await until(() => gate.arrivals === 1);
    await errand.pause(run.runId);
    await until(async () => (await stateOf(run.runId)) === "paused");
    gate.open();
    await until(async () => (await errand.tickets()).length === 1);
    const { runId } = (await errand.tickets())[0]!;
    await errand.pause(runId);
    await until(async () => (await stateOf(runId)) === "paused");
    await errand.resume(run.runId, "this");
    await until(async () =>
      expect([await stateOf(run.runId), await stateOf(runId)]).toEqual(["paused", "paused"]),
    );
    await errand.continue(runId);
    await until(async () => (await stateOf(runId)) === "ended");
    await until(async () => (await stateOf(run.runId)) === "paused");
    await errand.continue(run.runId);
    expect(await run.result()).toBe("this");
    expect(await factsOfType(errand, run.runId, "attempt_started")).toHaveLength(1);
  });
});
