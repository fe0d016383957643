import assert from "node:assert/strict";
import { isErased } from "../../runtime/ports/erasure.ts";
import type { NewRun } from "../../runtime/ports/store.ts";
import { durableCase, needing, storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, PUBLICATION, type World } from "./world.ts";

const END = { kind: "end", endKind: "completed" } as const;

/** A tree of two that has ended: the child's result was delivered and read. */
async function endedTree(world: World, name: string, parts: Partial<NewRun> = {}): Promise<void> {
  const child = `${name}c`;
  const held = await world.running(name, parts);
  await world.step(
    held,
    { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
    {
      create: [world.newChild(child, name, { user: parts.user ?? null })],
      openDelegations: [world.opening(child, name)],
    },
  );
  const work = await world.take(child);
  await world.committed({
    lane: { ...world.lane(work, END), summary: '{"said":"secret"}', lifecycle: true },
    deliver: [world.delivery(child, name)],
  });
  const again = await world.take(name);
  await world.step(again, END, {
    readInbox: [{ delegationId: id.delegation(child), digest: `digest-of-${child}`, status: "consumed" }],
    closeDelegations: [id.delegation(child)],
    openTickets: [
      {
        ticketId: id.ticket(name),
        runId: id.run(name),
        kind: "input",
        deadlineInMs: null,
        body: '{"ask":1}',
      },
    ],
    closeTickets: [{ ticketId: id.ticket(name), reason: "ended" }],
  });
}

const prune = (world: World, more: { endedBefore?: number; limit?: number; dryRun?: boolean } = {}) =>
  world.store.operations.prune(world.tenant, {
    endedBefore: world.clock.now() + 1,
    limit: 100,
    ...more,
  });

const NOTHING = { trees: 0, runs: 0 };

/** Everything that is left of a tree in the store, as text. */
async function traces(world: World, name: string): Promise<string> {
  const { store, tenant } = world;
  return JSON.stringify([
    await world.snapshot(name, `${name}c`),
    await store.listRuns(tenant, { rootRunId: id.run(name), limit: 10 }),
    await store.listRuns(tenant, { limit: 100 }),
    await store.listDelegations(tenant, { rootRunId: id.run(name), limit: 10 }),
    await store.listTickets(tenant, { rootRunId: id.run(name), limit: 10 }),
    (await store.readFeed(tenant, "lifecycle", null, 100)).entries,
  ]);
}

/** What is kept, for how long, and what takes its place. */
export const retentionCases: readonly StoreContractCase[] = [
  storeCase("L2 a pruned tree leaves its tombstone and nothing else", async (world) => {
    await endedTree(world, "a");
    const endedAt = world.clock.now();
    world.clock.advance(100);
    await world.create(world.newRun("b"));
    assert.deepEqual(await prune(world, { dryRun: true }), { trees: 1, runs: 2 });
    assert.equal((await world.row("a")).state, "ended");
    assert.deepEqual(await prune(world), { trees: 1, runs: 2 });
    const left = await traces(world, "a");
    assert.ok(!left.includes(id.run("a")) && !left.includes(id.run("ac")), left);
    assert.equal((await world.store.countRuns(world.tenant)).ended, 0);
    const { tenant } = world;
    assert.deepEqual(await world.store.operations.listTombstones(tenant, 10), [
      { tenant, rootRunId: id.run("a"), runs: 2, endedAt, prunedAt: world.clock.now() },
    ]);
    assert.deepEqual(await world.store.operations.listTombstones(tenant, 0), []);
    assert.deepEqual(await prune(world), NOTHING);
    await world.take("b");
  }),

  storeCase(
    "L2 trees are pruned from the longest ended on, and only those before the time",
    async (world) => {
      for (const name of ["a", "b", "c"]) {
        await endedTree(world, name);
        world.clock.advance(10);
      }
      const before = (await world.row("c")).endedAt ?? 0;
      assert.deepEqual(await prune(world, { limit: 1 }), { trees: 1, runs: 2 });
      assert.equal(await world.store.getRun(world.tenant, id.run("a")), null);
      assert.deepEqual(await prune(world, { endedBefore: before }), { trees: 1, runs: 2 });
      assert.equal(await world.store.getRun(world.tenant, id.run("b")), null);
      assert.equal((await world.row("c")).state, "ended");
      const tombstones = await world.store.operations.listTombstones(world.tenant, 10);
      assert.deepEqual(
        tombstones.map((one) => one.rootRunId),
        [id.run("b"), id.run("a")],
      );
    },
  ),

  storeCase("L2 prune never touches a tree of which something is open", async (world) => {
    const parent = await world.running("p");
    await world.step(parent, END, { create: [world.newChild("c", "p")] });
    world.clock.advance(10);
    const child = await world.take("c");
    assert.deepEqual(await prune(world), NOTHING);
    await world.step(child, { kind: "park", state: "awaiting", dueInMs: null, signalSeqSeen: 0 });
    assert.deepEqual(await prune(world), NOTHING);
    await world.committed({ signals: [world.signal("c")] });
    const again = await world.take("c");
    await world.step(again, END);
    assert.deepEqual(await prune(world, { endedBefore: world.clock.now() }), NOTHING);
    assert.deepEqual(await prune(world), { trees: 1, runs: 2 });
  }),

  storeCase(
    "L2 prune never touches what is undelivered: an unread result, a ticket, an intent",
    async (world) => {
      const unread = await world.running("a");
      await world.committed({ deliver: [world.delivery("ac", "a")] });
      await world.step(unread, END);
      const asking = await world.running("b");
      await world.step(asking, END, {
        openTickets: [
          { ticketId: id.ticket("t"), runId: id.run("b"), kind: "input", deadlineInMs: null, body: "{}" },
        ],
      });
      const cancelling = await world.running("c");
      await world.step(cancelling, END, {
        openDelegations: [world.opening("cc", "c")],
        cancelDelegations: [id.delegation("cc")],
      });
      assert.deepEqual(await prune(world), NOTHING);
      await world.committed({ closeTickets: [{ ticketId: id.ticket("t"), reason: "ended" }] });
      await world.committed({ intentsDelivered: [id.delegation("cc")] });
      assert.deepEqual(await prune(world), { trees: 2, runs: 2 });
      assert.equal((await world.store.listInbox(world.tenant, id.run("a")))[0]?.status, "unread");
    },
  ),

  storeCase("L2 the trees of a thread are pruned together, once none of them lives", async (world) => {
    const threadId = id.thread("talk");
    await endedTree(world, "a", { threadId });
    world.clock.advance(10);
    const before = world.clock.now();
    const second = await world.running("b", { threadId });
    assert.deepEqual(await prune(world), NOTHING);
    await world.step(second, END);
    assert.deepEqual(await prune(world, { endedBefore: before }), NOTHING);
    assert.deepEqual(await prune(world, { limit: 1 }), { trees: 2, runs: 3 });
    const third = await world.running("c", { threadId });
    assert.equal(third.version, 0);
    await world.step(third, END);
  }),

  storeCase("L5 receipts are kept as long as their tree", async (world) => {
    const operationId = id.operation("start-a");
    const start = world.draft({ operationId, create: [world.newRun("a")] });
    const { kind } = await world.store.commit(start);
    assert.equal(kind, "committed");
    const held = await world.take("a");
    const end = world.draft({ lane: world.lane(held, END) });
    assert.equal((await world.store.commit(end)).kind, "committed");
    assert.equal((await world.store.commit(start)).kind, "duplicate");
    assert.equal((await world.store.commit(end)).kind, "duplicate");
    assert.deepEqual(await prune(world), { trees: 1, runs: 1 });
    assert.deepEqual(await world.store.commit(end), { kind: "stale", reason: "absent" });
    assert.equal((await world.store.commit(start)).kind, "committed");
  }),

  storeCase("L7 a cursor stays good when what was behind and before it is pruned", async (world) => {
    const { store, tenant } = world;
    await endedTree(world, "a");
    const early = await store.readFeed(tenant, "lifecycle", null, 1);
    const late = await store.readFeed(tenant, "lifecycle", null, 100);
    const worked = await store.readFeed(tenant, "operational", null, 100);
    world.clock.advance(10);
    await prune(world);
    await world.create(world.newRun("b"));
    for (const { cursor } of [early, late]) {
      const page = await store.readFeed(tenant, "lifecycle", cursor, 100);
      assert.deepEqual(
        page.entries.map(({ entry }) => entry.feed === "lifecycle" && entry.row.runId),
        [id.run("b")],
      );
    }
    await world.take("b");
    const next = await store.readFeed(tenant, "operational", worked.cursor, 100);
    assert.deepEqual(
      next.entries.map(({ entry }) => entry.feed === "operational" && entry.event.runId),
      [id.run("b")],
    );
  }),

  storeCase("L31 prune and tombstones keep to their tenant", async (world) => {
    const stranger = world.as("zeta");
    await endedTree(world, "a");
    await endedTree(stranger, "a");
    assert.deepEqual(await prune(stranger), { trees: 1, runs: 2 });
    assert.equal((await world.row("a")).state, "ended");
    assert.deepEqual(await world.store.operations.listTombstones(world.tenant, 10), []);
  }),

  storeCase("L2 what workers did, and who of them died, before the time is forgotten", async (world) => {
    await world.worker("old");
    await world.store.deregisterWorker(world.tenant, id.incarnation("old"));
    world.clock.advance(10);
    await world.worker("w1");
    await prune(world, { endedBefore: world.clock.now() });
    const workers = await world.store.listWorkers(world.tenant);
    assert.deepEqual(
      workers.map((worker) => worker.incarnation),
      [id.incarnation("w1")],
    );
    const { entries } = await world.store.readFeed(world.tenant, "operational", null, 10);
    assert.deepEqual(
      entries.map(({ at }) => at),
      [world.clock.now()],
    );
    assert.equal((await world.store.heartbeat(world.tenant, id.incarnation("old"))).alive, false);
  }),

  needing(
    "users",
    storeCase("L2 erasing a person leaves ids, order and digests, and no content", async (world) => {
      const { store, tenant } = world;
      await endedTree(world, "a", { user: "ada" });
      await endedTree(world, "b", { user: "bob" });
      const before = await world.log();
      const bobs = await traces(world, "b");
      assert.deepEqual(await store.operations.eraseUser(tenant, "ada"), { erased: 2, stillLive: 0 });
      for (const [at, row] of (await world.log()).entries()) {
        const was = before[at];
        if (row.rootRunId !== id.run("a")) {
          assert.deepEqual(row, was);
          continue;
        }
        assert.ok(isErased(row.body), row.body);
        assert.deepEqual({ ...row, body: "" }, { ...was, body: "" });
      }
      assert.ok(isErased((await world.row("a")).summary) && isErased((await world.row("ac")).summary));
      const [envelope] = await store.listInbox(tenant, id.run("a"));
      assert.ok(envelope !== undefined && isErased(envelope.body));
      assert.equal(envelope.digest, "digest-of-ac");
      const ticket = await store.getTicket(tenant, id.ticket("a"));
      assert.ok(ticket !== null && isErased(ticket.body) && ticket.status === "closed");
      const text = JSON.stringify([
        await traces(world, "a"),
        (await store.readFeed(tenant, "lifecycle", null, 100)).entries.filter(
          ({ entry }) => entry.feed === "lifecycle" && entry.row.rootRunId === id.run("a"),
        ),
      ]);
      assert.ok(!text.includes("secret") || bobs.includes("secret"));
      assert.deepEqual(await store.operations.eraseUser(tenant, "ada"), { erased: 0, stillLive: 0 });
      assert.deepEqual(await prune(world), { trees: 2, runs: 4 });
    }),
  ),

  needing(
    "users",
    storeCase("L2 a person's trees that live, or whose thread lives, are left alone", async (world) => {
      const { store, tenant } = world;
      const threadId = id.thread("talk");
      await endedTree(world, "a", { user: "ada", threadId });
      const live = await world.running("b", { user: "ada", threadId });
      assert.deepEqual(await store.operations.eraseUser(tenant, "ada"), { erased: 0, stillLive: 3 });
      assert.equal((await world.row("a")).summary, "{}");
      await world.step(live, END);
      assert.deepEqual(await store.operations.eraseUser(tenant, "ada"), { erased: 3, stillLive: 0 });
    }),
  ),

  storeCase("L31 erasing a person keeps to the tenant", async (world) => {
    const stranger = world.as("zeta");
    await endedTree(world, "a", { user: "ada" });
    assert.deepEqual(await stranger.store.operations.eraseUser(stranger.tenant, "ada"), {
      erased: 0,
      stillLive: 0,
    });
    assert.ok(!isErased((await world.row("ac")).summary));
  }),

  storeCase("L31 erasing a tenant leaves nothing of it, and all of the others", async (world) => {
    const { store, tenant } = world;
    const stranger = world.as("zeta");
    await endedTree(stranger, "a");
    const theirs = JSON.stringify(await traces(stranger, "a"));
    await endedTree(world, "a", { user: "ada" });
    await store.putPublication(tenant, { ref: PUBLICATION, name: "writer", body: "{}" });
    await store.operations.setLimits(tenant, { tenant: 1, tree: null, agents: {} });
    const { cursor } = await store.readFeed(tenant, "lifecycle", null, 100);
    const held = await world.running("b");
    assert.deepEqual(await store.operations.eraseTenant(tenant), { kind: "refused", running: 1 });
    await world.step(held, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 });
    assert.deepEqual(await store.operations.eraseTenant(tenant), { kind: "erased", runs: 3 });
    assert.deepEqual(await world.log(), []);
    assert.deepEqual(await store.listRuns(tenant, { limit: 10 }), []);
    assert.deepEqual(await store.listWorkers(tenant), []);
    assert.deepEqual(await store.listPublications(tenant), []);
    assert.deepEqual((await store.readFeed(tenant, "operational", null, 10)).entries, []);
    assert.equal((await store.operations.getLimits(tenant)).tenant, null);
    assert.equal((await store.heartbeat(tenant, held.incarnation)).alive, false);
    assert.equal(JSON.stringify(await traces(stranger, "a")), theirs);
    await world.create(world.newRun("a"));
    const page = await store.readFeed(tenant, "lifecycle", cursor, 10);
    assert.equal(page.entries.length, 1);
  }),

  durableCase(
    "L2 tombstones and erased bodies outlive the store's closing; positions are not given again",
    async (world) => {
      await endedTree(world, "a", { user: "ada" });
      await endedTree(world, "b");
      await world.store.operations.eraseUser(world.tenant, "ada");
      world.clock.advance(10);
      const { cursor } = await world.store.readFeed(world.tenant, "lifecycle", null, 100);
      assert.deepEqual(await prune(world), { trees: 2, runs: 4 });
      return cursor;
    },
    async (world, cursor) => {
      assert.equal((await world.store.operations.listTombstones(world.tenant, 10)).length, 2);
      await world.create(world.newRun("c"));
      const page = await world.store.readFeed(world.tenant, "lifecycle", cursor, 10);
      assert.equal(page.entries.length, 1);
    },
  ),

  storeCase(
    "L31 an inspection tells the oldest lease and the oldest Run that nobody has claimed",
    async (world) => {
      const { store, tenant } = world;
      await world.worker("w1");
      await world.create(world.newRun("a"), world.newRun("later", { delayMs: 1_000_000 }));
      world.clock.advance(70_000);
      const findings = await store.operations.inspect(tenant);
      const lease = findings.find((one) => one.name === "oldest lease, ms");
      const unclaimed = findings.find((one) => one.name === "oldest unclaimed run, ms");
      assert.deepEqual([lease?.value, lease?.level], [70_000, "warn"]);
      assert.deepEqual([unclaimed?.value, unclaimed?.runId, unclaimed?.level], [70_000, id.run("a"), "warn"]);
      for (const one of findings) assert.equal(one.fix !== null, one.level !== "ok", one.name);
      const theirs = await store.operations.inspect(id.tenant("zeta"));
      assert.ok(theirs.every((one) => one.runId === null && one.level === "ok"));
    },
  ),
];
