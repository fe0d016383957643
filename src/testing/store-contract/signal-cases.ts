import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id } from "./world.ts";

/** Facts from everybody but the lane's holder: they append and raise numbers, and never move the version. */
export const signalCases: readonly StoreContractCase[] = [
  ...(["waiting", "awaiting", "paused"] as const).map((state) =>
    storeCase(`L4 a signal makes a Run that is ${state} ready at once`, async (world) => {
      await world.parked("a", state, 60_000);
      world.clock.advance(10);
      await world.committed({ signals: [world.signal("a")] });
      const row = await world.row("a");
      assert.deepEqual(
        [row.state, row.dueAt, row.signalSeq, row.controlSeq],
        ["ready", world.clock.now(), 1, 0],
      );
      assert.equal(row.version, 1);
    }),
  ),

  storeCase("L4 a signal leaves a running Run with its holder and moves no version", async (world) => {
    const held = await world.running("a");
    await world.committed({ signals: [world.signal("a")] });
    const row = await world.row("a");
    assert.deepEqual(
      [row.state, row.claimedBy, row.version, row.signalSeq],
      ["running", held.incarnation, 0, 1],
    );
    const receipt = await world.step(held);
    assert.equal(receipt.signalSeq, 1);
  }),

  storeCase("L4 a signal leaves a ready Run its place in the order of claims", async (world) => {
    await world.create(world.newRun("a"));
    const { dueAt } = await world.row("a");
    world.clock.advance(50);
    await world.committed({ signals: [world.signal("a"), world.signal("a", { control: true })] });
    const row = await world.row("a");
    assert.deepEqual([row.state, row.dueAt, row.signalSeq, row.controlSeq], ["ready", dueAt, 2, 1]);
  }),

  storeCase("L4 a message leaves a delayed Run delayed, a control makes it ready", async (world) => {
    await world.create(world.newRun("a", { delayMs: 60_000 }));
    await world.committed({ signals: [world.signal("a")] });
    assert.deepEqual([(await world.row("a")).state, (await world.row("a")).signalSeq], ["created", 1]);
    await world.committed({ signals: [world.signal("a", { control: true })] });
    const row = await world.row("a");
    assert.deepEqual([row.state, row.dueAt, row.controlSeq], ["ready", world.clock.now(), 1]);
  }),

  storeCase("L4 a control does not bring a Run past the others in its thread's queue", async (world) => {
    await world.running("a");
    await world.create(world.newRun("b", { threadId: id.thread("a") }));
    await world.committed({ signals: [world.signal("b", { control: true })] });
    const row = await world.row("b");
    assert.deepEqual([row.state, row.lane, row.signalSeq, row.controlSeq], ["created", false, 1, 1]);
    assert.deepEqual(await world.claim(id.incarnation("w1")), []);
  }),

  storeCase("L23 a control raises both numbers, a message one", async (world) => {
    await world.running("a");
    await world.committed({ signals: [world.signal("a"), world.signal("a", { control: true })] });
    const row = await world.row("a");
    assert.deepEqual([row.signalSeq, row.controlSeq], [2, 1]);
  }),

  storeCase("L25 several signals of one commit each count, in order", async (world) => {
    await world.running("a");
    const bodies = ['["one"]', '["two"]', '["three"]'];
    await world.committed({ signals: bodies.map((body) => world.signal("a", { body })) });
    const pending = await world.store.readPending(world.tenant, id.run("a"), 0);
    assert.deepEqual(
      pending.signals.map((row) => [row.signal, row.body]),
      bodies.map((body, index) => [index + 1, body]),
    );
    assert.deepEqual([pending.signalSeq, pending.controlSeq], [3, 0]);
  }),

  storeCase("L25 pending shows the signals above the number asked for, and no creation", async (world) => {
    await world.running("a");
    await world.committed({ signals: [world.signal("a", { body: '["one"]' })] });
    await world.committed({ signals: [world.signal("a", { body: '["two"]' })] });
    const read = (after: number) => world.store.readPending(world.tenant, id.run("a"), after);
    assert.deepEqual(
      (await read(1)).signals.map((row) => row.body),
      ['["two"]'],
    );
    assert.deepEqual((await read(2)).signals, []);
    assert.equal((await read(0)).signals.length, 2);
  }),

  storeCase("L31 pending of a Run that does not exist is empty", async (world) => {
    const pending = await world.store.readPending(world.tenant, id.run("none"), 0);
    assert.deepEqual(pending, { signalSeq: 0, controlSeq: 0, signals: [], inbox: [] });
  }),

  storeCase("L26 a signal to a Run that does not exist is refused, also for the record", async (world) => {
    for (const ifEnded of ["refuse", "record"] as const) {
      const outcome = await world.commit({ signals: [world.signal("none", { ifEnded })] });
      assert.deepEqual(outcome, { kind: "refused", reason: "run_absent" });
    }
    assert.deepEqual(await world.log(), []);
  }),

  storeCase("L3 a signal to an ended Run is refused with its whole commit", async (world) => {
    await world.ended("a");
    await world.create(world.newRun("b"));
    const before = await world.snapshot("a", "b");
    const outcome = await world.commit({ signals: [world.signal("b"), world.signal("a")] });
    assert.deepEqual(outcome, { kind: "refused", reason: "run_ended" });
    assert.deepEqual(await world.snapshot("a", "b"), before);
  }),

  storeCase("L3 a late fact for the record is kept and changes no state", async (world) => {
    await world.ended("a");
    const before = await world.row("a");
    const signal = world.signal("a", { ifEnded: "record", control: true, body: '["late"]' });
    await world.committed({ signals: [signal] });
    const row = await world.row("a");
    assert.deepEqual(row, { ...before, signalSeq: 1, controlSeq: 1 });
    const last = (await world.log()).at(-1);
    assert.deepEqual([last?.body, last?.source, last?.signal, last?.version], ['["late"]', "signal", 1, 1]);
  }),

  storeCase("L4 the end of a Run and a late signal of the same commit agree", async (world) => {
    const held = await world.running("a");
    const receipt = await world.step(
      held,
      { kind: "end", endKind: "canceled" },
      { signals: [world.signal("a", { body: '["own"]' })] },
    );
    const row = await world.row("a");
    assert.deepEqual([row.state, row.signalSeq, receipt.signalSeq], ["ended", 1, 1]);
  }),

  storeCase("K16.3 of many concurrent writers to one Run none is lost", async (world) => {
    const held = await world.running("a");
    const outcomes = await Promise.all([
      ...Array.from({ length: 25 }, (_, index) =>
        world.commit({ signals: [world.signal("a", { body: `["m${index}"]` })] }),
      ),
      world.commit({ lane: world.lane(held) }),
    ]);
    assert.ok(outcomes.every((outcome) => outcome.kind === "committed"));
    const { signals, signalSeq } = await world.store.readPending(world.tenant, id.run("a"), 0);
    assert.equal(signalSeq, 25);
    assert.deepEqual(
      signals.map((row) => row.signal),
      Array.from({ length: 25 }, (_, index) => index + 1),
    );
    assert.equal(new Set(signals.map((row) => row.body)).size, 25);
    assert.equal((await world.row("a")).version, 1);
  }),
];
