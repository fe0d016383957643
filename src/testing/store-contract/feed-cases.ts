import assert from "node:assert/strict";
import { ErrandError } from "../../domain/errand-error.ts";
import type { FeedEntry, FeedName, WakeHint } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id, type World } from "./world.ts";

async function readAll(world: World, feed: FeedName, pageSize = 3): Promise<readonly FeedEntry[]> {
  const entries: FeedEntry[] = [];
  let cursor: string | null = null;
  for (;;) {
    const page = await world.store.readFeed(world.tenant, feed, cursor, pageSize);
    assert.ok(page.entries.length <= pageSize);
    entries.push(...page.entries);
    cursor = page.cursor;
    if (page.entries.length === 0) return entries;
  }
}

function bodies(entries: readonly FeedEntry[]): readonly string[] {
  return entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.body : "operational"));
}

function events(entries: readonly FeedEntry[]): string[] {
  return entries.map(({ entry }) =>
    entry.feed === "operational"
      ? [entry.event.kind, entry.event.incarnation.slice(4, 6), entry.event.runId?.slice(4, 5) ?? "-"].join(
          " ",
        )
      : "lifecycle",
  );
}

/** Listens to the hints of one piece of work; a later call of the store gives them time to arrive. */
async function hintsOf(world: World, work: () => Promise<unknown>): Promise<readonly WakeHint[]> {
  const hints: WakeHint[] = [];
  const stop = world.store.onWake((hint) => hints.push(hint));
  await work();
  await world.store.countRuns(world.tenant);
  stop();
  return hints;
}

const isInvalidInput = (error: unknown) => ErrandError.is(error) && error.code === "INVALID_INPUT";

/** What outsiders follow: feeds by cursor, and hints. */
export const feedCases: readonly StoreContractCase[] = [
  storeCase("L7 the lifecycle feed has every creation and what was marked, in order", async (world) => {
    const held = await world.running("a", { body: '["a"]' });
    await world.committed({ lane: world.lane(held, { kind: "hold" }, { body: '["quiet"]' }) });
    await world.committed({
      lane: world.lane({ ...held, version: 1 }, { kind: "hold" }, { body: '["loud"]', lifecycle: true }),
      create: [world.newChild("c", "a", { body: '["c"]' })],
      signals: [
        world.signal("a", { body: '["message"]' }),
        world.signal("a", { body: '["cancel"]', lifecycle: true, control: true }),
      ],
    });
    const entries = await readAll(world, "lifecycle");
    assert.deepEqual(bodies(entries), ['["a"]', '["loud"]', '["c"]', '["cancel"]']);
    const log = await world.log();
    for (const { seq, at, entry } of entries) {
      assert.ok(entry.feed === "lifecycle");
      assert.deepEqual(
        entry.row,
        log.find((row) => row.seq === seq),
      );
      assert.equal(at, entry.row.at);
    }
  }),

  storeCase("L7 a reader by cursor sees each entry once, whatever the size of its pages", async (world) => {
    for (let index = 0; index < 11; index += 1) await world.create(world.newRun(`r${index}`));
    const expected = Array.from({ length: 11 }, (_, index) => id.run(`r${index}`));
    for (const size of [1, 2, 5, 11, 50]) {
      const entries = await readAll(world, "lifecycle", size);
      assert.deepEqual(
        entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : null)),
        expected,
      );
    }
  }),

  storeCase("L7 a cursor of an empty page goes on where later entries come", async (world) => {
    const feeds = ["lifecycle", "operational"] as const;
    const read = (feed: FeedName, after: string | null) =>
      world.store.readFeed(world.tenant, feed, after, 10);
    const empty = await Promise.all(feeds.map((feed) => read(feed, null)));
    await world.worker("w1");
    await world.create(world.newRun("a"));
    for (const [index, feed] of feeds.entries()) {
      assert.deepEqual(empty[index]?.entries, []);
      const next = await read(feed, empty[index]?.cursor ?? null);
      assert.equal(next.entries.length, 1);
      assert.deepEqual((await read(feed, next.cursor)).entries, []);
    }
  }),

  storeCase("L7 a reader beside concurrent writers misses nothing", async (world) => {
    const seen: string[] = [];
    let cursor: string | null = null;
    const read = async () => {
      const page = await world.store.readFeed(world.tenant, "lifecycle", cursor, 4);
      cursor = page.cursor;
      seen.push(...page.entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : "")));
      return page.entries.length;
    };
    const names = Array.from({ length: 60 }, (_, index) => `r${index}`);
    for (let start = 0; start < names.length; start += 10) {
      const writes = names.slice(start, start + 10).map((name) => world.create(world.newRun(name)));
      await read();
      await Promise.all(writes);
      await read();
    }
    while ((await read()) > 0);
    assert.equal(seen.length, 60);
    assert.deepEqual([...seen].sort(), names.map(id.run).sort());
    const log = await world.log();
    assert.deepEqual(
      seen,
      log.map((row) => row.runId),
    );
  }),

  storeCase("L7 the operational feed tells of workers and claims", async (world) => {
    await world.create(world.newRun("a"));
    const held = await world.take("a", "w1");
    await world.store.release(world.tenant, held.incarnation, [{ runId: held.runId, epoch: held.epoch }]);
    await world.take("a", "w1");
    await world.store.deregisterWorker(world.tenant, held.incarnation);
    await world.take("a", "w2");
    world.clock.advance(2);
    await world.store.reapWorkers(world.tenant, 1);
    const told = events(await readAll(world, "operational"));
    assert.deepEqual(told.slice(0, 4), [
      "worker_started w1 -",
      "claimed w1 a",
      "released w1 a",
      "claimed w1 a",
    ]);
    assert.ok(told.includes("worker_stopped w1 -"));
    const rest = told.slice(told.indexOf("worker_started w2 -"));
    assert.deepEqual(rest.slice(0, 2), ["worker_started w2 -", "claimed w2 a"]);
    assert.deepEqual(rest.slice(2).sort(), ["lease_lost w2 a", "worker_dead w2 -"]);
  }),

  storeCase(
    "L7 a claim that rode in a commit is told under the number of that commit's first entry",
    async (world) => {
      const held = await world.running("p");
      await world.step(
        held,
        { kind: "hold" },
        {
          create: ["a", "b"].map((name) => world.newChild(name, "p", { claim: true })),
          claim: { incarnation: held.incarnation, carries: CARRIES, parent: false },
        },
      );
      for (const size of [1, 2, 3, 10]) {
        const entries = await readAll(world, "operational", size);
        assert.deepEqual(events(entries).slice(0, 2), ["worker_started w1 -", "claimed w1 p"]);
        const claims = entries.slice(2);
        assert.deepEqual([...events(claims)].sort(), ["claimed w1 a", "claimed w1 b"]);
        const lane = (await world.log()).find((row) => row.source === "lane");
        assert.ok(claims.every(({ seq }) => seq === lane?.seq));
        const [first] = claims;
        assert.ok(first?.entry.feed === "operational");
        assert.equal(first.entry.event.epoch, 1);
      }
    },
  ),

  storeCase("L7 feed numbers never go back", async (world) => {
    const held = await world.running("a");
    await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c", "a", { claim: true })],
        claim: { incarnation: held.incarnation, carries: CARRIES, parent: false },
      },
    );
    await world.worker("w2");
    await world.store.deregisterWorker(world.tenant, held.incarnation);
    for (const feed of ["lifecycle", "operational"] as const) {
      const seqs = (await readAll(world, feed)).map((entry) => entry.seq);
      assert.deepEqual(
        seqs,
        [...seqs].sort((a, b) => a - b),
      );
    }
  }),

  storeCase("L7 a cursor that this database has not given is refused by name", async (world) => {
    await world.create(world.newRun("a"));
    for (const cursor of ["", "garbage", "1", "bm90IGEgY3Vyc29y", "__proto__"]) {
      for (const feed of ["lifecycle", "operational"] as const) {
        await assert.rejects(world.store.readFeed(world.tenant, feed, cursor, 10), isInvalidInput);
      }
    }
  }),

  {
    name: "L7 a cursor of another database is refused by name",
    needs: [],
    async run(harness) {
      const first = await harness.open();
      try {
        const second = await harness.open();
        try {
          for (const feed of ["lifecycle", "operational"] as const) {
            const { cursor } = await first.readFeed(id.tenant("acme"), feed, null, 10);
            await first.readFeed(id.tenant("acme"), feed, cursor, 10);
            await assert.rejects(second.readFeed(id.tenant("acme"), feed, cursor, 10), isInvalidInput);
          }
        } finally {
          await second.close();
        }
      } finally {
        await first.close();
      }
    },
  },

  storeCase(
    "S4 a hint follows what became ready, a signal to a running Run, and every commit",
    async (world) => {
      const has = (hints: readonly WakeHint[], kind: WakeHint["kind"], name: string | null) =>
        hints.some((hint) => hint.kind === kind && (name === null || hint.runId === id.run(name)));
      const created = await hintsOf(world, () => world.create(world.newRun("a")));
      assert.ok(has(created, "ready", null) && has(created, "log", null));
      assert.ok(created.every((hint) => hint.tenant === world.tenant));
      const held = await world.take("a");
      const signalled = await hintsOf(world, () => world.committed({ signals: [world.signal("a")] }));
      assert.ok(has(signalled, "signal", "a"));
      assert.ok(!has(signalled, "ready", null));
      await world.step(held, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 1 });
      const woken = await hintsOf(world, () => world.committed({ signals: [world.signal("a")] }));
      assert.ok(has(woken, "ready", null));
      const again = await world.take("a");
      const release = [{ runId: again.runId, epoch: again.epoch }];
      const released = await hintsOf(world, () =>
        world.store.release(world.tenant, again.incarnation, release),
      );
      assert.ok(has(released, "ready", null));
      await world.take("a");
      world.clock.advance(2);
      assert.ok(has(await hintsOf(world, () => world.store.reapWorkers(world.tenant, 1)), "ready", null));
    },
  ),

  storeCase("S4 a hint names a Run that has ended, and tells when its lane passes on", async (world) => {
    const held = await world.running("a");
    await world.create(world.newRun("b", { threadId: id.thread("a") }));
    const step = await hintsOf(world, () => world.step(held));
    assert.ok(step.every((hint) => hint.kind !== "ended"));
    const ended = await hintsOf(world, () => world.step(held, { kind: "end", endKind: "completed" }));
    assert.deepEqual(
      ended.filter((hint) => hint.kind === "ended"),
      [{ tenant: world.tenant, runId: id.run("a"), kind: "ended" }],
    );
    assert.ok(ended.some((hint) => hint.kind === "ready"));
  }),

  storeCase("S4 a hint comes after its commit is there to be read", async (world) => {
    const reads: Promise<unknown>[] = [];
    const stop = world.store.onWake(() => reads.push(world.store.getRun(world.tenant, id.run("a"))));
    await world.create(world.newRun("a"));
    await world.store.countRuns(world.tenant);
    stop();
    assert.ok(reads.length > 0);
    for (const row of await Promise.all(reads)) assert.notEqual(row, null);
  }),

  storeCase("S4 a listener that fails disturbs neither the store nor the other listeners", async (world) => {
    let told = 0;
    const stops = [
      world.store.onWake(() => {
        throw new Error("listener");
      }),
      world.store.onWake(() => {
        told += 1;
      }),
    ];
    await world.create(world.newRun("a"));
    await world.create(world.newRun("b"));
    await world.store.countRuns(world.tenant);
    assert.ok(told >= 2);
    for (const stop of stops) stop();
    told = 0;
    await world.create(world.newRun("c"));
    await world.store.countRuns(world.tenant);
    assert.equal(told, 0, "a listener that has stopped hears nothing");
  }),

  storeCase("S4 a refused commit gives no hint", async (world) => {
    const hints = await hintsOf(world, () => world.commit({ signals: [world.signal("none")] }));
    assert.deepEqual(hints, []);
  }),
];
