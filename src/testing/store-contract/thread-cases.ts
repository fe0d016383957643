import assert from "node:assert/strict";
import type { NewRun, RunFilter } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type World } from "./world.ts";

const END = { kind: "end", endKind: "completed" } as const;

/** A later root Run on the thread of Run `a`. */
const later = (world: World, name: string, parts: Partial<NewRun> = {}) =>
  world.newRun(name, { threadId: id.thread("a"), ...parts });

/** A thread's lane: one Run holds it, the others queue, the version goes on. */
export const threadCases: readonly StoreContractCase[] = [
  storeCase("L4 the first Run of a thread has the lane, the next ones queue behind it", async (world) => {
    const held = await world.running("a");
    await world.create(later(world, "b"), later(world, "c"));
    for (const name of ["b", "c"]) {
      const row = await world.row(name);
      assert.deepEqual(
        [row.state, row.lane, row.version, row.dueAt],
        ["created", false, 0, world.clock.now()],
      );
    }
    assert.deepEqual(await world.claim(held.incarnation, 10), []);
  }),

  storeCase(
    "L4 at an end the lane passes to the oldest queued Run, with the thread's version",
    async (world) => {
      const a = await world.running("a");
      await world.create(later(world, "b"));
      await world.create(later(world, "c"));
      await world.step(a);
      await world.step(a, END);
      const row = await world.row("b");
      assert.deepEqual([row.state, row.lane, row.version], ["ready", true, 2]);
      assert.deepEqual([(await world.row("c")).lane, (await world.row("c")).state], [false, "created"]);
      const b = await world.take("b");
      assert.equal(b.version, 2);
      await world.step(b, END);
      assert.deepEqual([(await world.row("c")).lane, (await world.row("c")).version], [true, 3]);
    },
  ),

  storeCase("L4 a queued Run that is delayed keeps its time when the lane comes", async (world) => {
    const a = await world.running("a");
    await world.create(later(world, "b", { delayMs: 1_000 }));
    const due = world.clock.now() + 1_000;
    assert.equal((await world.row("b")).dueAt, due);
    await world.step(a, END);
    const row = await world.row("b");
    assert.deepEqual([row.state, row.lane, row.dueAt], ["created", true, due]);
    assert.deepEqual(await world.claim(a.incarnation), []);
    world.clock.advance(1_000);
    await world.take("b");
  }),

  storeCase("L4 a Run on a thread whose Runs have ended goes on from their version", async (world) => {
    const a = await world.running("a");
    await world.step(a);
    await world.step(a, END);
    const receipt = await world.create(later(world, "b"));
    assert.equal(receipt.version, null);
    const row = await world.row("b");
    assert.deepEqual([row.state, row.lane, row.version], ["ready", true, 2]);
    const b = await world.take("b");
    await world.step(b);
    const versions = await world.store.readLog(world.tenant, { threadId: id.thread("a") }, 0, 100);
    assert.deepEqual(
      versions.map((entry) => [entry.runId, entry.source, entry.version]),
      [
        [id.run("a"), "signal", 0],
        [id.run("a"), "lane", 1],
        [id.run("a"), "lane", 2],
        [id.run("b"), "signal", 2],
        [id.run("b"), "lane", 3],
      ],
    );
  }),

  storeCase("L2 the creation of a queued Run meets the version of its thread", async (world) => {
    const a = await world.running("a");
    await world.step(a);
    await world.create(later(world, "b"));
    const [entry] = await world.store.readLog(world.tenant, { runId: id.run("b") }, 0, 10);
    assert.deepEqual([entry?.version, (await world.row("b")).version], [1, 0]);
  }),

  storeCase("L4 the commit that ends a Run may create the next one of its thread", async (world) => {
    const a = await world.running("a");
    await world.step(a, END, { create: [later(world, "b")] });
    const row = await world.row("b");
    assert.deepEqual([row.state, row.lane, row.version], ["ready", true, 1]);
  }),

  storeCase("L4 who was queued before goes before one created at the end", async (world) => {
    const a = await world.running("a");
    await world.create(later(world, "b"));
    await world.step(a, END, { create: [later(world, "c")] });
    assert.deepEqual([(await world.row("b")).lane, (await world.row("c")).lane], [true, false]);
  }),

  storeCase("L13 no root Run starts on a child's thread", async (world) => {
    await world.running("p");
    await world.create(world.newChild("c", "p"));
    const before = await world.snapshot("p", "c", "x");
    const outcome = await world.commit({ create: [world.newRun("x", { threadId: id.thread("c") })] });
    assert.deepEqual(outcome, { kind: "refused", reason: "thread_not_root" });
    assert.deepEqual(await world.snapshot("p", "c", "x"), before);
  }),

  storeCase("L13 nor after the child has ended", async (world) => {
    await world.running("p");
    await world.create(world.newChild("c", "p"));
    await world.step(await world.take("c", "w2"), END);
    const outcome = await world.commit({ create: [world.newRun("x", { threadId: id.thread("c") })] });
    assert.deepEqual(outcome, { kind: "refused", reason: "thread_not_root" });
  }),

  storeCase("L14 K5.4 a Run that exists is not created again, ended or not", async (world) => {
    await world.ended("a");
    await world.create(world.newRun("b", { summary: '{"first":true}' }));
    for (const name of ["a", "b"]) {
      const before = await world.snapshot(name);
      const outcome = await world.commit({ create: [world.newRun(name, { agent: "other" })] });
      assert.deepEqual(outcome, { kind: "refused", reason: "run_exists" });
      assert.deepEqual(await world.snapshot(name), before);
    }
  }),

  storeCase("K5.6 of many concurrent creations of one Run exactly one is committed", async (world) => {
    const outcomes = await Promise.all(
      Array.from({ length: 15 }, (_, index) =>
        world.commit({ create: [world.newRun("a", { agent: `agent-${index}` })] }),
      ),
    );
    assert.equal(outcomes.filter((outcome) => outcome.kind === "committed").length, 1);
    const refused = outcomes.filter((outcome) => outcome.kind === "refused");
    assert.ok(refused.every((outcome) => outcome.reason === "run_exists"));
    assert.equal(refused.length, 14);
  }),

  storeCase("L4 of many concurrent Runs on one thread exactly one has the lane", async (world) => {
    await Promise.all(Array.from({ length: 12 }, (_, index) => world.create(later(world, `r${index}`))));
    const rows = await world.store.listRuns(world.tenant, { threadId: id.thread("a"), limit: 100 });
    assert.equal(rows.length, 12);
    assert.equal(rows.filter((row) => row.lane).length, 1);
  }),

  storeCase("L4 a thread of many queued Runs ends one after the other, in order", async (world) => {
    const queue = Array.from({ length: 30 }, (_, index) => `r${String(index).padStart(2, "0")}`);
    await world.create(...queue.map((name) => later(world, name)));
    for (const name of queue) await world.step(await world.take(name), END);
    const counts = await world.store.countRuns(world.tenant);
    assert.deepEqual([counts.ended, counts.created, counts.ready], [30, 0, 0]);
    assert.equal((await world.row("r29")).version, 30);
  }),

  storeCase("L2 a Run row tells who the Run is", async (world) => {
    await world.running("p");
    world.clock.advance(7);
    await world.create(
      world.newChild("c", "p", { priority: 4, depth: 3, agent: "critic", summary: '{"s":1}' }),
    );
    assert.deepEqual(await world.row("c"), {
      tenant: world.tenant,
      runId: id.run("c"),
      rootRunId: id.run("p"),
      parentRunId: id.run("p"),
      threadId: id.thread("c"),
      delegationId: id.delegation("c"),
      agent: "critic",
      publication: id.publication("writer"),
      depth: 3,
      priority: 4,
      state: "ready",
      lane: true,
      version: 0,
      signalSeq: 0,
      controlSeq: 0,
      epoch: 0,
      fruitlessClaims: 0,
      claimedBy: null,
      dueAt: world.clock.now(),
      createdAt: world.clock.now(),
      endedAt: null,
      summary: '{"s":1}',
    });
  }),

  storeCase(
    "L2 Runs are listed by tree, parent, thread and state, newest first or oldest first",
    async (world) => {
      const held = await world.running("p");
      await world.create(world.newChild("c1", "p"), world.newChild("c2", "p"));
      await world.create(
        world.newRun("q", { delayMs: 10 }),
        world.newRun("p2", { threadId: id.thread("p") }),
      );
      await world.step(held, END);
      const list = async (filter: Omit<RunFilter, "limit">, limit = 10) =>
        (await world.store.listRuns(world.tenant, { ...filter, limit })).map((row) => row.runId);
      const runs = (...names: string[]) => names.map(id.run);
      assert.deepEqual(await list({}), runs("p2", "q", "c2", "c1", "p"));
      assert.deepEqual(await list({ order: "newest" }), await list({}));
      assert.deepEqual(await list({ order: "oldest" }), runs("p", "c1", "c2", "q", "p2"));
      assert.deepEqual(await list({ order: "oldest", offset: 1 }, 2), runs("c1", "c2"));
      assert.deepEqual(await list({ rootRunId: id.run("p") }), runs("c2", "c1", "p"));
      assert.deepEqual(await list({ parentRunId: id.run("p"), order: "oldest" }), runs("c1", "c2"));
      assert.deepEqual(await list({ threadId: id.thread("p") }), runs("p2", "p"));
      assert.deepEqual(await list({ rootsOnly: true }), runs("p2", "q", "p"));
      assert.deepEqual(await list({ states: ["ended"] }), runs("p"));
      assert.deepEqual(await list({ states: ["ready", "created"], rootsOnly: true }), runs("p2", "q"));
      assert.deepEqual(await list({ rootRunId: id.run("p"), states: ["ready"] }, 1), runs("c2"));
      assert.deepEqual(await list({ parentRunId: id.run("none") }), []);
    },
  ),

  storeCase("L2 Runs are counted by state, every state named", async (world) => {
    const none = { created: 0, ready: 0, running: 0, waiting: 0, awaiting: 0, paused: 0, ended: 0 };
    assert.deepEqual(await world.store.countRuns(world.tenant), none);
    await world.ended("a");
    await world.parked("b", "waiting");
    await world.parked("c", "awaiting");
    await world.parked("d", "paused");
    await world.running("e");
    await world.create(world.newRun("f"), world.newRun("g"), world.newRun("h", { delayMs: 9 }));
    assert.deepEqual(await world.store.countRuns(world.tenant), {
      created: 1,
      ready: 2,
      running: 1,
      waiting: 1,
      awaiting: 1,
      paused: 1,
      ended: 1,
    });
  }),
];
