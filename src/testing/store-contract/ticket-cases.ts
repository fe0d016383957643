import assert from "node:assert/strict";
import type { Commit } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type Held, type World } from "./world.ts";

const opening = (
  ticket: string,
  run: string,
  deadlineInMs: number | null = null,
): Commit["openTickets"][number] => ({
  ticketId: id.ticket(ticket),
  runId: id.run(run),
  kind: "approval",
  deadlineInMs,
  body: `{"ask":"${ticket}"}`,
});

const decision = (ticket: string, name = "yes") => ({
  ticketId: id.ticket(ticket),
  decisionId: `decision-${name}`,
  decisionDigest: `digest-${name}`,
});

/** A Run that awaits a ticket. */
async function asking(world: World, ticket = "t", deadlineInMs: number | null = null): Promise<Held> {
  const held = await world.running("a");
  await world.step(
    held,
    { kind: "park", state: "awaiting", dueInMs: deadlineInMs, signalSeqSeen: 0 },
    { openTickets: [opening(ticket, "a", deadlineInMs)] },
  );
  return held;
}

const decide = (world: World, ticket: string, name = "yes") =>
  world.commit({
    signals: [world.signal("a", { body: `["${name}"]` })],
    decideTicket: decision(ticket, name),
  });

/** Tickets are opened, decided once or closed, and stay so. */
export const ticketCases: readonly StoreContractCase[] = [
  storeCase("L33 a ticket is opened with its time and its deadline", async (world) => {
    await asking(world, "t", 5_000);
    assert.deepEqual(await world.store.getTicket(world.tenant, id.ticket("t")), {
      tenant: world.tenant,
      ticketId: id.ticket("t"),
      runId: id.run("a"),
      rootRunId: id.run("a"),
      kind: "approval",
      status: "open",
      openedAt: world.clock.now(),
      deadlineAt: world.clock.now() + 5_000,
      body: '{"ask":"t"}',
      decisionId: null,
      decisionDigest: null,
      closeReason: null,
    });
  }),

  storeCase("L33 a decision and the wake of the asking Run are one commit", async (world) => {
    await asking(world);
    assert.equal((await decide(world, "t")).kind, "committed");
    const ticket = await world.store.getTicket(world.tenant, id.ticket("t"));
    assert.deepEqual(
      [ticket?.status, ticket?.decisionId, ticket?.decisionDigest, ticket?.closeReason],
      ["decided", "decision-yes", "digest-yes", null],
    );
    assert.equal((await world.row("a")).state, "ready");
  }),

  storeCase("L33 the first decision wins, and a refused one changes nothing", async (world) => {
    await asking(world);
    await decide(world, "t", "yes");
    const before = await world.snapshot("a");
    assert.deepEqual(await decide(world, "t", "no"), { kind: "refused", reason: "ticket_decided" });
    assert.deepEqual(await world.snapshot("a"), before);
  }),

  storeCase("L33 the exact repeat of a decision returns the same receipt", async (world) => {
    await asking(world);
    const draft = world.draft({ signals: [world.signal("a")], decideTicket: decision("t") });
    const first = await world.store.commit(draft);
    assert.deepEqual(await world.store.commit(draft), { ...first, kind: "duplicate" });
    assert.equal((await world.row("a")).signalSeq, 1);
  }),

  storeCase("L33 of many concurrent decisions exactly one wins", async (world) => {
    await asking(world);
    const outcomes = await Promise.all(
      Array.from({ length: 15 }, (_, index) => decide(world, "t", `d${index}`)),
    );
    assert.equal(outcomes.filter((outcome) => outcome.kind === "committed").length, 1);
    const winner = outcomes.findIndex((outcome) => outcome.kind === "committed");
    const ticket = await world.store.getTicket(world.tenant, id.ticket("t"));
    assert.equal(ticket?.decisionId, `decision-d${winner}`);
    assert.equal((await world.row("a")).signalSeq, 1);
  }),

  storeCase("L33 a decision on a ticket that does not exist is refused", async (world) => {
    await world.running("a");
    assert.deepEqual(await decide(world, "none"), { kind: "refused", reason: "ticket_absent" });
    assert.equal((await world.row("a")).signalSeq, 0);
  }),

  storeCase("L33 a decision on a closed ticket is refused, also after its deadline", async (world) => {
    const held = await asking(world, "t", 1_000);
    await world.committed({ signals: [world.signal("a")] });
    const again = await world.take("a");
    await world.step(
      again,
      { kind: "hold" },
      { closeTickets: [{ ticketId: id.ticket("t"), reason: "canceled" }] },
    );
    assert.deepEqual(await decide(world, "t"), { kind: "refused", reason: "ticket_closed" });
    world.clock.advance(2_000);
    assert.deepEqual(await decide(world, "t"), { kind: "refused", reason: "ticket_closed" });
    const ticket = await world.store.getTicket(world.tenant, id.ticket("t"));
    assert.deepEqual([ticket?.status, ticket?.closeReason, ticket?.decisionId], ["closed", "canceled", null]);
    assert.equal(held.runId, ticket?.runId);
  }),

  storeCase("L33 a decision is in time before the deadline and refused from it on", async (world) => {
    await asking(world, "t", 1_000);
    await world.committed({ signals: [world.signal("a")], openTickets: [opening("u", "a", 1_000)] });
    world.clock.advance(999);
    assert.equal((await decide(world, "t")).kind, "committed");
    world.clock.advance(1);
    assert.deepEqual(await decide(world, "u"), { kind: "refused", reason: "ticket_expired" });
    assert.equal((await world.store.getTicket(world.tenant, id.ticket("u")))?.status, "open");
  }),

  storeCase("L33 a decided ticket that is past its deadline reads as decided", async (world) => {
    await asking(world, "t", 1_000);
    await decide(world, "t");
    world.clock.advance(2_000);
    assert.deepEqual(await decide(world, "t", "no"), { kind: "refused", reason: "ticket_decided" });
  }),

  storeCase("L33 closing leaves a decided ticket decided", async (world) => {
    await asking(world);
    await decide(world, "t");
    const held = await world.take("a");
    await world.step(
      held,
      { kind: "end", endKind: "completed" },
      {
        closeTickets: [
          { ticketId: id.ticket("t"), reason: "ended" },
          { ticketId: id.ticket("none"), reason: "ended" },
        ],
      },
    );
    const ticket = await world.store.getTicket(world.tenant, id.ticket("t"));
    assert.deepEqual([ticket?.status, ticket?.closeReason], ["decided", null]);
  }),

  storeCase("L33 opening a ticket again keeps the first", async (world) => {
    await asking(world);
    await decide(world, "t");
    await world.committed({
      signals: [world.signal("a")],
      openTickets: [{ ...opening("t", "a", 1), kind: "other" }],
    });
    const ticket = await world.store.getTicket(world.tenant, id.ticket("t"));
    assert.deepEqual([ticket?.status, ticket?.kind, ticket?.deadlineAt], ["decided", "approval", null]);
  }),

  storeCase("L33 tickets are listed by Run, by tree and by being open, oldest first", async (world) => {
    const held = await world.running("a");
    await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c", "a")],
        openTickets: [opening("t1", "a"), opening("t2", "c"), opening("t3", "a")],
        closeTickets: [],
      },
    );
    await world.create(world.newRun("b"));
    await world.committed({
      signals: [world.signal("b")],
      openTickets: [opening("t4", "b")],
      rootRunId: id.run("b"),
    });
    await world.committed({ signals: [world.signal("a")], decideTicket: decision("t1") });
    const list = async (filter: Omit<Parameters<typeof world.store.listTickets>[1], "limit">, limit = 10) =>
      (await world.store.listTickets(world.tenant, { ...filter, limit })).map((ticket) => ticket.ticketId);
    const tickets = (...names: string[]) => names.map(id.ticket);
    assert.deepEqual(await list({}), tickets("t1", "t2", "t3", "t4"));
    assert.deepEqual(await list({ open: true }), tickets("t2", "t3", "t4"));
    assert.deepEqual(await list({ rootRunId: id.run("a") }), tickets("t1", "t2", "t3"));
    assert.deepEqual(await list({ rootRunId: id.run("a"), open: true }), tickets("t2", "t3"));
    assert.deepEqual(await list({ runId: id.run("a") }), tickets("t1", "t3"));
    assert.deepEqual(await list({ runId: id.run("c") }), tickets("t2"));
    assert.deepEqual(await list({}, 2), tickets("t1", "t2"));
    assert.deepEqual(await list({ runId: id.run("none") }), []);
  }),
];
