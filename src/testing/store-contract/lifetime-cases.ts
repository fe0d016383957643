import assert from "node:assert/strict";
import { ErrandError } from "../../domain/errand-error.ts";
import { NO_LIMITS } from "../../runtime/ports/running-limits.ts";
import { durableCase, pairCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id, PUBLICATION, World } from "./world.ts";

const isClosed = (error: unknown) => ErrandError.is(error) && error.code === "STORE_CLOSED";

async function allOf(world: World): Promise<unknown> {
  const { store, tenant } = world;
  return {
    runs: await world.snapshot("p", "c", "later"),
    workers: await store.listWorkers(tenant),
    publications: await store.listPublications(tenant),
    lifecycle: (await store.readFeed(tenant, "lifecycle", null, 100)).entries,
    operational: (await store.readFeed(tenant, "operational", null, 100)).entries,
  };
}

/** Closing, opening again, and two connections at once. */
export const lifetimeCases: readonly StoreContractCase[] = [
  {
    name: "L1 after it was closed, every call to a store is refused",
    needs: [],
    async run(harness) {
      const store = await harness.open();
      const world = new World(store, harness.clock);
      const { tenant } = world;
      const draft = world.draft({ create: [world.newRun("a")] });
      await store.close();
      const incarnation = id.incarnation("w1");
      const calls: readonly (() => Promise<unknown>)[] = [
        () => store.commit(draft),
        () => world.worker("w1"),
        () => store.heartbeat(tenant, incarnation),
        () => store.deregisterWorker(tenant, incarnation),
        () => store.reapWorkers(tenant, 1),
        () => store.listWorkers(tenant),
        () => world.claim(incarnation),
        () => store.release(tenant, incarnation, []),
        () => store.nextDueAt(tenant),
        () => store.getRun(tenant, id.run("a")),
        () => store.listRuns(tenant, { limit: 1 }),
        () => store.countRuns(tenant),
        () => store.readLog(tenant, { all: true }, 0, 1),
        () => store.readPending(tenant, id.run("a"), 0),
        () => store.getTicket(tenant, id.ticket("t")),
        () => store.listTickets(tenant, { limit: 1 }),
        () => store.getDelegation(tenant, id.delegation("d")),
        () => store.listDelegations(tenant, { limit: 1 }),
        () => store.listInbox(tenant, id.run("a")),
        () => store.pendingIntents(tenant, 1),
        () => store.orphanedDelegations(tenant, 1),
        () => store.putPublication(tenant, { ref: PUBLICATION, name: "writer", body: "{}" }),
        () => store.getPublication(tenant, PUBLICATION),
        () => store.headPublication(tenant, "writer"),
        () => store.listPublications(tenant),
        () => store.readFeed(tenant, "lifecycle", null, 1),
        () => store.operations.setLimits(tenant, NO_LIMITS),
        () => store.operations.getLimits(tenant),
        () => store.operations.countRunning(tenant, null),
        () => store.operations.prune(tenant, { endedBefore: 1, limit: 1 }),
        () => store.operations.listTombstones(tenant, 1),
        () => store.operations.eraseUser(tenant, "ada"),
        () => store.operations.eraseTenant(tenant),
        () => store.operations.inspect(tenant),
      ];
      for (const call of calls) await assert.rejects(call(), isClosed, String(call));
    },
  },

  durableCase(
    "L5 a repeat returns the first receipt after the store was closed and opened again",
    async (world) => {
      const held = await world.running("p");
      const draft = world.draft({
        lane: world.lane(held),
        create: [world.newChild("c", "p", { claim: true })],
        claim: { incarnation: held.incarnation, carries: CARRIES, parent: false },
      });
      return { draft, first: await world.store.commit(draft) };
    },
    async (world, { draft, first }) => {
      assert.deepEqual(await world.store.commit(draft), { ...first, kind: "duplicate" });
      const other = await world.store.commit({ ...draft, digest: "other" });
      assert.deepEqual(other, { kind: "conflict", firstDigest: draft.digest });
    },
  ),

  durableCase(
    "L2 what was committed is there after the store was closed and opened again, and work goes on",
    async (world) => {
      const held = await world.running("p");
      await world.step(
        held,
        { kind: "hold" },
        {
          create: [world.newChild("c", "p"), world.newRun("later", { threadId: id.thread("p") })],
          openDelegations: [world.opening("c", "p")],
          openTickets: [
            { ticketId: id.ticket("t"), runId: id.run("p"), kind: "approval", deadlineInMs: 50, body: "{}" },
          ],
          deliver: [world.delivery("d", "p")],
          signals: [world.signal("p", { control: true })],
        },
      );
      await world.store.putPublication(world.tenant, { ref: PUBLICATION, name: "writer", body: "{}" });
      return { held, before: await allOf(world) };
    },
    async (world, { held, before }) => {
      assert.deepEqual(await allOf(world), before);
      const last = (await world.log()).at(-1)?.seq ?? 0;
      await world.step(held, { kind: "end", endKind: "completed" });
      assert.ok(((await world.log()).at(-1)?.seq ?? 0) > last);
      assert.equal((await world.row("later")).lane, true);
    },
  ),

  durableCase(
    "L7 a cursor is good after the store was closed and opened again",
    async (world) => {
      await world.create(world.newRun("a"), world.newRun("b"));
      return (await world.store.readFeed(world.tenant, "lifecycle", null, 1)).cursor;
    },
    async (world, cursor) => {
      await world.create(world.newRun("c"));
      const page = await world.store.readFeed(world.tenant, "lifecycle", cursor, 10);
      assert.deepEqual(
        page.entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : null)),
        ["b", "c"].map(id.run),
      );
    },
  ),

  pairCase("L4 K21.3 of two connections that write from one version one commits", async (first, second) => {
    const held = await first.running("a");
    const outcomes = await Promise.all([
      first.commit({ lane: first.lane(held, { kind: "hold" }, { body: '["first"]' }) }),
      second.commit({ lane: second.lane(held, { kind: "hold" }, { body: '["second"]' }) }),
    ]);
    assert.deepEqual(outcomes.map((outcome) => outcome.kind).sort(), ["committed", "stale"]);
    assert.deepEqual(await second.row("a"), await first.row("a"));
  }),

  pairCase("L4 of two connections that claim, each Run goes to one", async (first, second) => {
    const w1 = await first.worker("w1");
    const w2 = await second.worker("w2");
    await first.create(...Array.from({ length: 10 }, (_, index) => first.newRun(`r${index}`)));
    const claims = await Promise.all([first.claim(w1, 10), second.claim(w2, 10)]);
    assert.equal(claims.flat().length, 10);
    assert.equal(new Set(claims.flat().map((run) => run.runId)).size, 10);
  }),

  pairCase("L5 a repeat on another connection returns the first receipt", async (first, second) => {
    const draft = first.draft({ create: [first.newRun("a")] });
    const outcomes = await Promise.all(
      [first, second, first, second].map((world) => world.store.commit(draft)),
    );
    assert.deepEqual(outcomes.map((outcome) => outcome.kind).sort(), [
      "committed",
      "duplicate",
      "duplicate",
      "duplicate",
    ]);
  }),

  pairCase(
    "L7 a reader on another connection misses nothing of concurrent writers",
    async (first, second) => {
      const seen: string[] = [];
      let cursor: string | null = null;
      const read = async () => {
        const page = await second.store.readFeed(second.tenant, "lifecycle", cursor, 7);
        cursor = page.cursor;
        seen.push(...page.entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : "")));
        return page.entries.length;
      };
      for (let round = 0; round < 10; round += 1) {
        const names = ["a", "b", "c"].map((name) => `${name}${round}`);
        const writes = names.map((name, index) => (index === 1 ? second : first).create(first.newRun(name)));
        await Promise.all([...writes, read()]);
      }
      while ((await read()) > 0);
      assert.equal(seen.length, 30);
      assert.equal(new Set(seen).size, 30);
    },
  ),
];
