import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, PUBLICATION, type Held, type World } from "./world.ts";

const END = { kind: "end", endKind: "completed" } as const;

/** The same family of ids in the same state, in one tenant. */
async function furnish(world: World): Promise<Held> {
  const held = await world.running("p");
  await world.step(
    held,
    { kind: "hold" },
    {
      create: [world.newChild("c", "p")],
      openDelegations: [world.opening("c", "p"), world.opening("lost", "p")],
      openTickets: [
        { ticketId: id.ticket("t"), runId: id.run("p"), kind: "approval", deadlineInMs: null, body: "{}" },
      ],
      deliver: [world.delivery("d", "p")],
      signals: [world.signal("p")],
    },
  );
  await world.committed({ signals: [world.signal("p")], cancelDelegations: [id.delegation("c")] });
  await world.store.putPublication(world.tenant, { ref: PUBLICATION, name: "writer", body: "{}" });
  return held;
}

/** Everything that a tenant can read with ids that it knows. */
async function everything(world: World): Promise<unknown> {
  const { store, tenant } = world;
  return {
    run: await store.getRun(tenant, id.run("p")),
    runs: await store.listRuns(tenant, { limit: 100 }),
    thread: await store.listRuns(tenant, { threadId: id.thread("p"), limit: 100 }),
    counts: await store.countRuns(tenant),
    log: await store.readLog(tenant, { all: true }, 0, 100),
    runLog: await store.readLog(tenant, { runId: id.run("p") }, 0, 100),
    threadLog: await store.readLog(tenant, { threadId: id.thread("p") }, 0, 100),
    treeLog: await store.readLog(tenant, { rootRunId: id.run("p") }, 0, 100),
    pending: await store.readPending(tenant, id.run("p"), 0),
    ticket: await store.getTicket(tenant, id.ticket("t")),
    tickets: await store.listTickets(tenant, { runId: id.run("p"), limit: 100 }),
    delegation: await store.getDelegation(tenant, id.delegation("c")),
    delegations: await store.listDelegations(tenant, { rootRunId: id.run("p"), limit: 100 }),
    inbox: await store.listInbox(tenant, id.run("p")),
    intents: await store.pendingIntents(tenant, 100),
    orphans: await store.orphanedDelegations(tenant, 100),
    workers: await store.listWorkers(tenant),
    nextDueAt: await store.nextDueAt(tenant),
    publication: await store.getPublication(tenant, PUBLICATION),
    head: await store.headPublication(tenant, "writer"),
    publications: await store.listPublications(tenant),
    lifecycle: (await store.readFeed(tenant, "lifecycle", null, 100)).entries,
    operational: (await store.readFeed(tenant, "operational", null, 100)).entries,
  };
}

/** L31: what is another tenant's is as good as absent. */
export const tenantCases: readonly StoreContractCase[] = [
  storeCase("L31 another tenant's ids read as absent, everywhere", async (world) => {
    const stranger = world.as("zeta");
    const nothing = await everything(stranger);
    await furnish(world);
    assert.deepEqual(await everything(stranger), nothing);
  }),

  storeCase("L31 another tenant's writes change nothing of mine", async (world) => {
    const held = await furnish(world);
    const before = await everything(world);
    const stranger = world.as("zeta");
    const theirs = await furnish(stranger);
    await stranger.step(theirs, END, {
      closeDelegations: [id.delegation("c")],
      closeTickets: [{ ticketId: id.ticket("t"), reason: "ended" }],
      deliver: [stranger.delivery("c", "p")],
      readInbox: [{ delegationId: id.delegation("d"), digest: "digest-of-d", status: "consumed" }],
    });
    await stranger.store.deregisterWorker(stranger.tenant, held.incarnation);
    stranger.clock.advance(10);
    await stranger.store.reapWorkers(stranger.tenant, 0);
    assert.deepEqual(await everything(world), before);
    assert.equal((await world.store.heartbeat(world.tenant, held.incarnation)).alive, true);
    await world.step(held, END);
  }),

  storeCase("L31 another tenant's Runs answer a commit as absent ones do", async (world) => {
    const held = await world.running("a");
    const stranger = world.as("zeta");
    assert.deepEqual(await stranger.commit({ lane: stranger.lane(held) }), {
      kind: "stale",
      reason: "absent",
    });
    assert.deepEqual(await stranger.commit({ signals: [stranger.signal("a")] }), {
      kind: "refused",
      reason: "run_absent",
    });
    await world.committed({
      signals: [world.signal("a")],
      openTickets: [
        { ticketId: id.ticket("t"), runId: id.run("a"), kind: "input", deadlineInMs: null, body: "{}" },
      ],
    });
    const decideTicket = { ticketId: id.ticket("t"), decisionId: "d", decisionDigest: "d" };
    assert.deepEqual(await stranger.commit({ decideTicket }), { kind: "refused", reason: "ticket_absent" });
  }),

  storeCase("L31 one Run id, thread id and operation id in two tenants are two", async (world) => {
    const stranger = world.as("zeta");
    const operationId = id.operation("start");
    await world.committed({ operationId, digest: "one", create: [world.newRun("a")] });
    await stranger.committed({
      operationId,
      digest: "two",
      create: [stranger.newRun("a", { agent: "painter" })],
    });
    assert.deepEqual([(await world.row("a")).agent, (await stranger.row("a")).agent], ["writer", "painter"]);
    assert.deepEqual([(await world.row("a")).lane, (await stranger.row("a")).lane], [true, true]);
    const held = await world.take("a");
    await world.step(held);
    assert.equal((await stranger.row("a")).version, 0);
  }),

  storeCase("L31 a worker claims, beats and dies in its own tenant only", async (world) => {
    const stranger = world.as("zeta");
    await stranger.create(stranger.newRun("a"));
    const incarnation = await world.worker("w1");
    assert.deepEqual(await world.claim(incarnation), []);
    assert.deepEqual(await stranger.claim(incarnation), []);
    assert.deepEqual(await stranger.store.heartbeat(stranger.tenant, incarnation), {
      alive: false,
      held: [],
    });
    world.clock.advance(100);
    assert.deepEqual(await stranger.store.reapWorkers(stranger.tenant, 1), []);
    assert.deepEqual(await world.store.reapWorkers(world.tenant, 1), [incarnation]);
  }),

  storeCase("L31 another tenant's due work does not stand in the way of a claim", async (world) => {
    const stranger = world.as("zeta");
    await stranger.create(stranger.newRun("older"));
    const held = await world.running("p");
    const receipt = await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c", "p", { claim: true })],
        claim: { incarnation: held.incarnation, carries: new Set([PUBLICATION]), parent: false },
      },
    );
    assert.equal(receipt.claimed.length, 1);
  }),

  storeCase("L31 tenants whose names contain one another stay apart", async (world) => {
    const tenants = ["a", "a.b", "a-b", "A", "a_", "a.b.c"].map((name) => world.as(name));
    for (const [index, tenant] of tenants.entries()) {
      await tenant.create(...Array.from({ length: index + 1 }, (_, run) => tenant.newRun(`r${run}`)));
    }
    for (const [index, tenant] of tenants.entries()) {
      assert.equal((await tenant.log()).length, index + 1);
      assert.equal((await tenant.store.countRuns(tenant.tenant)).ready, index + 1);
    }
  }),
];
