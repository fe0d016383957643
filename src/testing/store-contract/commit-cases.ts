import assert from "node:assert/strict";
import type { CommitOutcome } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id } from "./world.ts";

/** The one write path: repeats, refusals, and what one commit leaves in the log. */
export const commitCases: readonly StoreContractCase[] = [
  storeCase("L5 a repeat of a commit returns the first receipt and changes nothing", async (world) => {
    const draft = world.draft({ create: [world.newRun("a")] });
    const first = await world.store.commit(draft);
    assert.equal(first.kind, "committed");
    const before = await world.snapshot("a");
    world.clock.advance(5_000);
    const again = await world.store.commit(draft);
    assert.deepEqual(again, { ...first, kind: "duplicate" });
    assert.deepEqual(await world.snapshot("a"), before);
  }),

  storeCase("L5 K5.4 other content under the same operation id is a conflict", async (world) => {
    const operationId = id.operation("start-a");
    await world.committed({ operationId, digest: "first", create: [world.newRun("a")] });
    const before = await world.snapshot("a", "b");
    const outcome = await world.commit({
      operationId,
      digest: "second",
      create: [world.newRun("b", { agent: "other" })],
    });
    assert.deepEqual(outcome, { kind: "conflict", firstDigest: "first" });
    assert.deepEqual(await world.snapshot("a", "b"), before);
  }),

  storeCase(
    "L5 the repeat of a lane commit is known before its version and epoch are looked at",
    async (world) => {
      const held = await world.running("a");
      const draft = world.draft({ lane: world.lane(held) });
      const first = await world.store.commit(draft);
      held.version += 1;
      await world.step(held);
      await world.store.deregisterWorker(world.tenant, held.incarnation);
      const again = await world.store.commit(draft);
      assert.deepEqual(again, { ...first, kind: "duplicate" });
      assert.equal((await world.row("a")).version, 2);
    },
  ),

  storeCase("L5 the repeat of an ending commit returns its receipt", async (world) => {
    const held = await world.running("a");
    const draft = world.draft({ lane: world.lane(held, { kind: "end", endKind: "completed" }) });
    const first = await world.store.commit(draft);
    assert.equal(first.kind, "committed");
    assert.deepEqual(await world.store.commit(draft), { ...first, kind: "duplicate" });
    const conflict = await world.store.commit({ ...draft, digest: "other" });
    assert.deepEqual(conflict, { kind: "conflict", firstDigest: draft.digest });
  }),

  storeCase("L5 the repeat's receipt names the claims and conflicts of the first time", async (world) => {
    const parent = await world.running("p");
    await world.step(parent, { kind: "hold" }, { deliver: [world.delivery("x", "p")] });
    const draft = world.draft({
      lane: world.lane(parent),
      create: [world.newChild("c", "p", { claim: true })],
      deliver: [world.delivery("x", "p", { digest: "another" })],
      claim: { incarnation: parent.incarnation, carries: CARRIES, parent: false },
    });
    const first = await world.store.commit(draft);
    assert.ok(first.kind === "committed");
    assert.equal(first.receipt.claimed.length, 1);
    assert.deepEqual(first.receipt.conflicts, [id.delegation("x")]);
    assert.deepEqual(await world.store.commit(draft), { ...first, kind: "duplicate" });
    assert.equal((await world.row("c")).epoch, 1);
  }),

  storeCase("L5 a refused commit is not remembered: the same operation may succeed later", async (world) => {
    const draft = world.draft({ signals: [world.signal("a")] });
    assert.deepEqual(await world.store.commit(draft), { kind: "refused", reason: "run_absent" });
    await world.create(world.newRun("a"));
    assert.equal((await world.store.commit(draft)).kind, "committed");
  }),

  storeCase("L5 a stale commit is not remembered", async (world) => {
    const held = await world.running("a");
    const draft = world.draft({ lane: world.lane({ ...held, version: 1 }) });
    assert.deepEqual(await world.store.commit(draft), { kind: "stale", reason: "version" });
    await world.step(held);
    assert.equal((await world.store.commit(draft)).kind, "committed");
  }),

  storeCase(
    "L5 K5.8 of many concurrent repeats one is committed and the others are duplicates",
    async (world) => {
      const draft = world.draft({ create: [world.newRun("a")] });
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => world.store.commit(draft)));
      const committed = outcomes.filter((outcome) => outcome.kind === "committed");
      const duplicates = outcomes.filter((outcome) => outcome.kind === "duplicate");
      assert.equal(committed.length, 1);
      assert.equal(duplicates.length, 19);
      for (const duplicate of duplicates) assert.deepEqual(duplicate.receipt, committed[0]?.receipt);
      assert.equal((await world.log()).length, 1);
    },
  ),

  storeCase("L1 a refused commit writes nothing of all that it asked for", async (world) => {
    const held = await world.running("a");
    await world.create(world.newRun("taken"));
    const before = await world.snapshot("a", "taken", "new");
    const outcome = await world.commit({
      lane: world.lane(held, { kind: "end", endKind: "completed" }, { summary: '{"x":1}' }),
      signals: [world.signal("a")],
      create: [world.newRun("new"), world.newRun("taken")],
      openDelegations: [world.opening("c", "a")],
      deliver: [world.delivery("d", "a")],
      openTickets: [
        { ticketId: id.ticket("t"), runId: id.run("a"), kind: "approval", deadlineInMs: null, body: "{}" },
      ],
    });
    assert.deepEqual(outcome, { kind: "refused", reason: "run_exists" });
    assert.deepEqual(await world.snapshot("a", "taken", "new"), before);
    assert.equal(await world.store.getRun(world.tenant, id.run("new")), null);
    assert.equal(await world.store.getTicket(world.tenant, id.ticket("t")), null);
    assert.equal(await world.store.getDelegation(world.tenant, id.delegation("c")), null);
  }),

  storeCase("L4 stale is found before refused", async (world) => {
    const held = await world.running("a");
    const outcome = await world.commit({
      lane: world.lane({ ...held, version: 9 }),
      create: [world.newRun("a")],
    });
    assert.deepEqual(outcome, { kind: "stale", reason: "version" });
  }),

  storeCase("L2 one commit's entries stand in the log as lane, creations, signals", async (world) => {
    const held = await world.running("p");
    await world.create(world.newRun("other"));
    const after = (await world.log()).at(-1)?.seq ?? 0;
    const draft = world.draft({
      lane: world.lane(held, { kind: "hold" }, { body: '["lane"]' }),
      create: [world.newChild("c1", "p", { body: '["c1"]' }), world.newChild("c2", "p", { body: '["c2"]' })],
      signals: [
        world.signal("other", { body: '["s1"]' }),
        world.signal("p", { body: '["s2"]' }),
        world.signal("other", { body: '["s3"]' }),
      ],
    });
    assert.equal((await world.store.commit(draft)).kind, "committed");
    const rows = await world.store.readLog(world.tenant, { all: true }, after, 100);
    assert.deepEqual(
      rows.map((row) => [row.body, row.source, row.version, row.signal, row.runId, row.rootRunId]),
      [
        ['["lane"]', "lane", 1, 0, id.run("p"), id.run("p")],
        ['["c1"]', "signal", 0, 0, id.run("c1"), id.run("p")],
        ['["c2"]', "signal", 0, 0, id.run("c2"), id.run("p")],
        ['["s1"]', "signal", 0, 1, id.run("other"), id.run("other")],
        ['["s2"]', "signal", 1, 1, id.run("p"), id.run("p")],
        ['["s3"]', "signal", 0, 2, id.run("other"), id.run("other")],
      ],
    );
    assert.deepEqual(
      rows.map((row) => [row.operationId, row.digest]),
      rows.map((_, index) => (index === 0 ? [draft.operationId, draft.digest] : [null, null])),
    );
    for (const row of rows) assert.equal(row.at, world.clock.now());
  }),

  storeCase(
    "L2 the log's numbers rise strictly, and each scope reads its own part in order",
    async (world) => {
      const a = await world.running("a");
      await world.create(world.newRun("b"));
      await world.step(a);
      await world.create(world.newChild("c", "a"));
      await world.step(a, { kind: "end", endKind: "completed" });
      await world.create(world.newRun("a2", { threadId: id.thread("a") }));
      const all = await world.log();
      for (let index = 1; index < all.length; index += 1) {
        assert.ok((all[index]?.seq ?? 0) > (all[index - 1]?.seq ?? 0));
      }
      const { store, tenant } = world;
      const a1 = all.filter((row) => row.runId === id.run("a"));
      assert.deepEqual(await store.readLog(tenant, { runId: id.run("a") }, 0, 100), a1);
      const tree = all.filter((row) => row.rootRunId === id.run("a"));
      assert.equal(tree.length, 4);
      assert.deepEqual(await store.readLog(tenant, { rootRunId: id.run("a") }, 0, 100), tree);
      const thread = all.filter((row) => row.threadId === id.thread("a"));
      assert.equal(thread.length, 4);
      assert.deepEqual(await store.readLog(tenant, { threadId: id.thread("a") }, 0, 100), thread);
      assert.deepEqual(await store.readLog(tenant, { all: true }, all[1]?.seq ?? 0, 2), all.slice(2, 4));
    },
  ),

  storeCase("S6 the store gives back every text as it was given", async (world) => {
    const body = '["line\\nbreak","\\u0000","quote\'s","漢字 🙂","  spaces  "]';
    await world.create(world.newRun("a", { body, summary: "not even JSON; DROP TABLE run" }));
    const [row] = await world.log();
    assert.equal(row?.body, body);
    assert.equal((await world.row("a")).summary, "not even JSON; DROP TABLE run");
  }),

  storeCase("S6 a large body comes back whole", async (world) => {
    const body = JSON.stringify(["x".repeat(2_000_000)]);
    await world.create(world.newRun("a", { body }));
    const [row] = await world.log();
    assert.equal(row?.body.length, body.length);
    assert.ok(row?.body === body);
  }),

  storeCase(
    "L2 a caller who changes a row that was given out changes nothing in the store",
    async (world) => {
      const held = await world.running("a");
      const receipt = await world.step(held, { kind: "hold" }, { deliver: [world.delivery("c", "a")] });
      Object.assign(receipt, { version: 99 });
      Object.assign(await world.row("a"), { state: "ended", version: 99, claimedBy: null });
      for (const row of await world.log()) Object.assign(row, { body: "forged" });
      for (const row of await world.store.listInbox(world.tenant, id.run("a")))
        Object.assign(row, { status: "consumed" });
      assert.equal((await world.row("a")).state, "running");
      assert.equal((await world.row("a")).version, 1);
      assert.ok((await world.log()).every((row) => row.body !== "forged"));
      assert.equal((await world.store.listInbox(world.tenant, id.run("a")))[0]?.status, "unread");
    },
  ),

  storeCase("L2 a receipt that a caller has changed is not what a repeat returns", async (world) => {
    const draft = world.draft({ create: [world.newRun("a")] });
    const first = await world.store.commit(draft);
    assert.ok(first.kind === "committed");
    const { at } = first.receipt;
    Object.assign(first.receipt, { at: 0 });
    const again: CommitOutcome = await world.store.commit(draft);
    assert.ok(again.kind === "duplicate");
    assert.equal(again.receipt.at, at);
    Object.assign(again.receipt, { at: 0 });
    const third = await world.store.commit(draft);
    assert.ok(third.kind === "duplicate");
    assert.equal(third.receipt.at, at);
  }),

  storeCase(
    "L1 a receipt tells the time of the store's clock and, without a lane, no version",
    async (world) => {
      const receipt = await world.create(world.newRun("a"));
      assert.deepEqual(receipt, {
        at: world.clock.now(),
        version: null,
        signalSeq: 0,
        controlSeq: 0,
        parked: false,
        claimed: [],
        conflicts: [],
      });
      assert.equal(world.store.now(), world.clock.now());
    },
  ),
];
