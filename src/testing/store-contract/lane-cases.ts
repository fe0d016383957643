import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type Held } from "./world.ts";

/** What the holder of a lane may write, and what it no longer may. */
export const laneCases: readonly StoreContractCase[] = [
  storeCase("L4 a lane commit on a Run that does not exist is stale", async (world) => {
    const held: Held = { runId: id.run("none"), incarnation: await world.worker("w1"), epoch: 1, version: 0 };
    assert.deepEqual(await world.commit({ lane: world.lane(held) }), { kind: "stale", reason: "absent" });
  }),

  storeCase("L3 a lane commit on an ended Run is stale, whatever else it names", async (world) => {
    const held = await world.ended("a");
    const before = await world.snapshot("a");
    for (const late of [held, { ...held, version: 0 }, { ...held, epoch: 7 }]) {
      assert.deepEqual(await world.commit({ lane: world.lane(late) }), { kind: "stale", reason: "ended" });
    }
    assert.deepEqual(await world.snapshot("a"), before);
  }),

  storeCase("L4 an older epoch is stale", async (world) => {
    const held = await world.running("a");
    const outcome = await world.commit({ lane: world.lane({ ...held, epoch: held.epoch - 1 }) });
    assert.deepEqual(outcome, { kind: "stale", reason: "epoch" });
  }),

  storeCase("L4 the right epoch under another incarnation is stale", async (world) => {
    const held = await world.running("a");
    const incarnation = await world.worker("w2");
    const outcome = await world.commit({ lane: world.lane({ ...held, incarnation }) });
    assert.deepEqual(outcome, { kind: "stale", reason: "epoch" });
  }),

  storeCase("L4 a Run that nobody has claimed takes no lane commit", async (world) => {
    await world.create(world.newRun("a"));
    const held: Held = { runId: id.run("a"), incarnation: await world.worker("w1"), epoch: 0, version: 0 };
    assert.deepEqual(await world.commit({ lane: world.lane(held) }), { kind: "stale", reason: "epoch" });
  }),

  storeCase("L4 an older and a newer version are both stale", async (world) => {
    const held = await world.running("a");
    await world.step(held);
    for (const version of [0, 2]) {
      const outcome = await world.commit({ lane: world.lane({ ...held, version }) });
      assert.deepEqual(outcome, { kind: "stale", reason: "version" });
    }
  }),

  storeCase(
    "L4 the epoch is looked at before the version, and the version before the control",
    async (world) => {
      const held = await world.running("a");
      await world.committed({ signals: [world.signal("a", { control: true })] });
      const unseen = { controlSeqSeen: 0 };
      const both = world.lane({ ...held, epoch: 5, version: 5 }, { kind: "hold" }, unseen);
      assert.deepEqual(await world.commit({ lane: both }), { kind: "stale", reason: "epoch" });
      const version = world.lane({ ...held, version: 5 }, { kind: "hold" }, unseen);
      assert.deepEqual(await world.commit({ lane: version }), { kind: "stale", reason: "version" });
    },
  ),

  storeCase("L23 a commit that authorizes something new is stale once a control has come", async (world) => {
    const held = await world.running("a");
    await world.committed({ signals: [world.signal("a", { control: true })] });
    const blind = world.lane(held, { kind: "hold" }, { controlSeqSeen: 0 });
    assert.deepEqual(await world.commit({ lane: blind }), { kind: "stale", reason: "control" });
    const seeing = world.lane(held, { kind: "hold" }, { controlSeqSeen: 1 });
    assert.equal((await world.commit({ lane: seeing })).kind, "committed");
  }),

  storeCase("L23 a commit that only records what has happened is not stopped by a control", async (world) => {
    const held = await world.running("a");
    await world.committed({ signals: [world.signal("a", { control: true })] });
    const receipt = await world.step(held);
    assert.equal(receipt.controlSeq, 1);
  }),

  storeCase("L23 a signal that is no control does not stop a commit that authorizes", async (world) => {
    const held = await world.running("a");
    await world.committed({ signals: [world.signal("a")] });
    const lane = world.lane(held, { kind: "hold" }, { controlSeqSeen: 0 });
    assert.equal((await world.commit({ lane })).kind, "committed");
  }),

  storeCase(
    "L4 K21.3 two writers append from one version: one commits, the other is stale",
    async (world) => {
      const held = await world.running("a");
      const outcomes = await Promise.all(
        ["left", "right"].map((side) =>
          world.commit({ lane: world.lane(held, { kind: "hold" }, { body: `["${side}"]` }) }),
        ),
      );
      assert.deepEqual(outcomes.map((outcome) => outcome.kind).sort(), ["committed", "stale"]);
      const lane = (await world.log()).filter((row) => row.source === "lane");
      assert.deepEqual(
        lane.map((row) => row.version),
        [1],
      );
    },
  ),

  storeCase("L4 hold counts the version, clears the fruitless claims and keeps the claim", async (world) => {
    const held = await world.running("a");
    assert.equal((await world.row("a")).fruitlessClaims, 1);
    const receipt = await world.step(held);
    assert.deepEqual([receipt.version, receipt.parked, receipt.claimed], [1, false, []]);
    const row = await world.row("a");
    assert.deepEqual(
      [row.state, row.version, row.fruitlessClaims, row.claimedBy, row.epoch, row.dueAt],
      ["running", 1, 0, held.incarnation, 1, null],
    );
  }),

  storeCase("L4 a summary is replaced if one is given and kept otherwise", async (world) => {
    const held = await world.running("a", { summary: '{"attempt":1}' });
    await world.step(held);
    assert.equal((await world.row("a")).summary, '{"attempt":1}');
    const lane = world.lane(held, { kind: "hold" }, { summary: '{"attempt":2}' });
    await world.committed({ lane });
    assert.equal((await world.row("a")).summary, '{"attempt":2}');
  }),

  ...(["waiting", "awaiting", "paused"] as const).map((state) =>
    storeCase(`L4 park releases the claim and leaves the Run ${state}`, async (world) => {
      const held = await world.running("a");
      const receipt = await world.step(held, { kind: "park", state, dueInMs: null, signalSeqSeen: 0 });
      assert.equal(receipt.parked, true);
      const row = await world.row("a");
      assert.deepEqual([row.state, row.claimedBy, row.dueAt, row.lane], [state, null, null, true]);
      assert.deepEqual(await world.claim(held.incarnation), []);
      const outcome = await world.commit({ lane: world.lane(held) });
      assert.deepEqual(outcome, { kind: "stale", reason: "epoch" });
    }),
  ),

  storeCase("L4 a Run parked with a timer can be claimed when it is due and not before", async (world) => {
    const held = await world.parked("a", "waiting", 1_000);
    assert.equal((await world.row("a")).dueAt, world.clock.now() + 1_000);
    world.clock.advance(999);
    assert.deepEqual(await world.claim(held.incarnation), []);
    world.clock.advance(1);
    const [claimed] = await world.claim(held.incarnation);
    assert.deepEqual([claimed?.runId, claimed?.epoch, claimed?.version], [held.runId, 2, 1]);
  }),

  storeCase(
    "L4 parking on an outdated signal number keeps the Run running, and the rest stands",
    async (world) => {
      const held = await world.running("a");
      await world.committed({ signals: [world.signal("a")] });
      const receipt = await world.step(held, {
        kind: "park",
        state: "waiting",
        dueInMs: 50,
        signalSeqSeen: 0,
      });
      assert.deepEqual([receipt.parked, receipt.signalSeq], [false, 1]);
      const row = await world.row("a");
      assert.deepEqual(
        [row.state, row.claimedBy, row.version, row.dueAt],
        ["running", held.incarnation, 1, null],
      );
      await world.step(held, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 1 });
      assert.equal((await world.row("a")).state, "waiting");
    },
  ),

  storeCase("L4 a signal of the parking commit itself makes the Run ready again", async (world) => {
    const held = await world.running("a");
    await world.step(
      held,
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
      { signals: [world.signal("a")] },
    );
    const row = await world.row("a");
    assert.deepEqual([row.state, row.signalSeq, row.claimedBy], ["ready", 1, null]);
  }),

  storeCase(
    "L17 an end on an outdated signal number is refused whole, and one that names no number is not",
    async (world) => {
      const held = await world.running("a");
      await world.committed({ signals: [world.signal("a")] });
      const end = { kind: "end", endKind: "canceled" } as const;
      const unseen = await world.commit({ lane: world.lane(held, { ...end, signalSeqSeen: 0 }) });
      assert.deepEqual(unseen, { kind: "stale", reason: "signal" });
      assert.equal((await world.row("a")).version, 0);
      await world.step(held, { ...end, signalSeqSeen: 1 });
      const other = await world.running("b");
      await world.committed({ signals: [world.signal("b")] });
      await world.step(other, end);
      assert.deepEqual([(await world.row("a")).state, (await world.row("b")).state], ["ended", "ended"]);
    },
  ),

  storeCase("L3 an end releases the lane for good", async (world) => {
    const held = await world.running("a");
    const receipt = await world.step(held, { kind: "end", endKind: "completed" });
    assert.equal(receipt.parked, false);
    const row = await world.row("a");
    assert.deepEqual(
      [row.state, row.lane, row.claimedBy, row.dueAt, row.endedAt, row.version],
      ["ended", false, null, null, world.clock.now(), 1],
    );
    world.clock.advance(1_000_000);
    assert.deepEqual(await world.claim(held.incarnation), []);
    assert.equal((await world.row("a")).endedAt, receipt.at);
  }),
];
