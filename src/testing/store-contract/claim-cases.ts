import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id, PUBLICATION, type Held, type World } from "./world.ts";

const MINUTE = 60_000;

async function names(world: World, worker: string, limit = 10): Promise<readonly string[]> {
  return (await world.claim(id.incarnation(worker), limit)).map((run) => run.runId);
}

const claimBy = (held: Held, parent = false, carries: ReadonlySet<string> = CARRIES) => ({
  incarnation: held.incarnation,
  carries,
  parent,
});

/** A waiting parent and its running child, which is to end. */
async function family(world: World, childParts = {}): Promise<Held> {
  const parent = await world.running("p");
  await world.step(
    parent,
    { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
    { create: [world.newChild("c", "p", childParts)] },
  );
  return world.take("c", "w2");
}

const END = { kind: "end", endKind: "completed" } as const;

/** Who gets which Run, and when. */
export const claimCases: readonly StoreContractCase[] = [
  storeCase("L4 a claim makes a Run running under a new epoch", async (world) => {
    await world.create(world.newRun("a"));
    const before = await world.row("a");
    assert.deepEqual(
      [before.state, before.lane, before.epoch, before.dueAt],
      ["ready", true, 0, world.clock.now()],
    );
    const incarnation = await world.worker("w1");
    assert.deepEqual(await world.claim(incarnation), [
      { runId: id.run("a"), epoch: 1, version: 0, signalSeq: 0, controlSeq: 0, fruitlessClaims: 1 },
    ]);
    assert.deepEqual(await world.row("a"), {
      ...before,
      state: "running",
      epoch: 1,
      fruitlessClaims: 1,
      claimedBy: incarnation,
      dueAt: null,
    });
    assert.deepEqual(await world.claim(incarnation), []);
  }),

  storeCase("L4 claims come in order of due time, and of creation where that is equal", async (world) => {
    await world.worker("w1");
    await world.create(world.newRun("late", { delayMs: 20 }));
    await world.create(world.newRun("b"), world.newRun("a"));
    world.clock.advance(10);
    await world.create(world.newRun("c"));
    world.clock.advance(10);
    assert.deepEqual(await names(world, "w1"), ["b", "a", "c", "late"].map(id.run));
  }),

  storeCase("L4 the order of claims holds across publications", async (world) => {
    const incarnation = await world.worker("w1");
    const painter = id.publication("painter");
    await world.create(
      world.newRun("a", { publication: painter }),
      world.newRun("b"),
      world.newRun("c", { publication: painter }),
      world.newRun("d"),
    );
    const claimed = await world.claim(incarnation, 10, new Set([PUBLICATION, painter]));
    assert.deepEqual(
      claimed.map((run) => run.runId),
      ["a", "b", "c", "d"].map(id.run),
    );
  }),

  storeCase("K7.4 a step of priority is worth a minute of waiting, so nothing starves", async (world) => {
    await world.worker("w1");
    await world.create(world.newRun("old"));
    world.clock.advance(2 * MINUTE);
    await world.create(world.newRun("three", { priority: 3 }), world.newRun("one", { priority: 1 }));
    await world.create(world.newRun("nine", { priority: 9 }));
    assert.deepEqual(await names(world, "w1"), ["nine", "three", "old", "one"].map(id.run));
  }),

  storeCase("L4 priority does not make a Run due before its time", async (world) => {
    await world.worker("w1");
    await world.create(world.newRun("a", { priority: 9, delayMs: 1_000 }));
    assert.deepEqual(await names(world, "w1"), []);
    world.clock.advance(1_000);
    assert.deepEqual(await names(world, "w1"), [id.run("a")]);
  }),

  storeCase("L4 a claim keeps to its limit", async (world) => {
    await world.worker("w1");
    await world.create(world.newRun("a"), world.newRun("b"), world.newRun("c"));
    assert.deepEqual(await names(world, "w1", 0), []);
    assert.deepEqual(await names(world, "w1", 2), ["a", "b"].map(id.run));
    assert.deepEqual(await names(world, "w1", 2), ["c"].map(id.run));
  }),

  storeCase("L4 a worker claims only Runs whose publication it carries", async (world) => {
    const incarnation = await world.worker("w1");
    const other = id.publication("painter");
    await world.create(world.newRun("a", { publication: other }), world.newRun("b"));
    assert.deepEqual(await names(world, "w1"), [id.run("b")]);
    assert.deepEqual(await world.claim(incarnation, 10, new Set()), []);
    const claimed = await world.claim(incarnation, 10, new Set([PUBLICATION, other]));
    assert.deepEqual(
      claimed.map((run) => run.runId),
      [id.run("a")],
    );
  }),

  storeCase("L4 an incarnation that nobody registered, or that is dead, claims nothing", async (world) => {
    await world.create(world.newRun("a"));
    assert.deepEqual(await names(world, "nobody"), []);
    const dead = await world.worker("w1");
    await world.store.deregisterWorker(world.tenant, dead);
    assert.deepEqual(await names(world, "w1"), []);
    assert.equal((await world.row("a")).epoch, 0);
  }),

  storeCase("K7.2 of many concurrent claims each Run goes to one", async (world) => {
    const workers = await Promise.all(Array.from({ length: 8 }, (_, index) => world.worker(`w${index}`)));
    await world.create(...Array.from({ length: 20 }, (_, index) => world.newRun(`r${index}`)));
    const claims = await Promise.all(workers.map((incarnation) => world.claim(incarnation, 5)));
    const claimed = claims.flat().map((run) => run.runId);
    assert.equal(claimed.length, 20);
    assert.equal(new Set(claimed).size, 20);
  }),

  storeCase("L4 a second claim of the same Run counts as fruitless until a lane commit", async (world) => {
    const first = await world.running("a");
    world.clock.advance(1);
    await world.store.reapWorkers(world.tenant, 0);
    const second = await world.take("a", "w2");
    assert.deepEqual([second.epoch > first.epoch, (await world.row("a")).fruitlessClaims], [true, 2]);
    await world.step(second);
    assert.equal((await world.row("a")).fruitlessClaims, 0);
  }),

  storeCase("L4 a delayed Run becomes claimable when its time comes", async (world) => {
    await world.worker("w1");
    await world.create(world.newRun("a", { delayMs: 300 }));
    const row = await world.row("a");
    assert.deepEqual([row.state, row.lane, row.dueAt], ["created", true, world.clock.now() + 300]);
    assert.deepEqual(await names(world, "w1"), []);
    world.clock.advance(300);
    assert.deepEqual(await names(world, "w1"), [id.run("a")]);
  }),

  storeCase("L4 the next due time is the earliest of all that may be claimed", async (world) => {
    const next = () => world.store.nextDueAt(world.tenant);
    assert.equal(await next(), null);
    const start = world.clock.now();
    await world.create(world.newRun("far", { delayMs: 900 }));
    await world.create(world.newRun("near", { delayMs: 300 }));
    assert.equal(await next(), start + 300);
    await world.create(world.newRun("now", { priority: 5 }));
    assert.equal(await next(), start);
    world.clock.advance(50);
    assert.equal(await next(), start, "what is overdue stays the earliest");
    await world.create(world.newRun("queued", { threadId: id.thread("far") }));
    const held = await world.take("now");
    assert.equal(await next(), start + 300, "neither a running Run nor a queued one counts");
    await world.step(held, { kind: "park", state: "waiting", dueInMs: 10, signalSeqSeen: 0 });
    assert.equal(await next(), start + 60);
  }),

  storeCase("L15 the creator of a child may claim it in the commit that creates it", async (world) => {
    const held = await world.running("p");
    const receipt = await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c1", "p", { claim: true }), world.newChild("c2", "p")],
        claim: claimBy(held),
      },
    );
    assert.deepEqual(receipt.claimed, [
      { runId: id.run("c1"), epoch: 1, version: 0, signalSeq: 0, controlSeq: 0, fruitlessClaims: 1 },
    ]);
    const row = await world.row("c1");
    assert.deepEqual([row.state, row.claimedBy, row.dueAt], ["running", held.incarnation, null]);
    assert.equal((await world.row("c2")).state, "ready");
    const child = world.held(receipt.claimed[0], held.incarnation);
    await world.step(child, END, { deliver: [world.delivery("c1", "p")] });
  }),

  storeCase("L18 all children of one commit may be claimed in it", async (world) => {
    const held = await world.running("p");
    const children = ["c1", "c2", "c3"];
    const receipt = await world.step(
      held,
      { kind: "hold" },
      {
        create: children.map((child) => world.newChild(child, "p", { claim: true })),
        claim: claimBy(held),
      },
    );
    assert.deepEqual(receipt.claimed.map((run) => run.runId).sort(), children.map(id.run));
  }),

  storeCase(
    "L15 nothing is claimed in a commit while older work is due that the worker carries",
    async (world) => {
      const held = await world.running("p");
      await world.create(world.newRun("older"));
      const receipt = await world.step(
        held,
        { kind: "hold" },
        {
          create: [world.newChild("c", "p", { claim: true })],
          claim: claimBy(held),
        },
      );
      assert.deepEqual(receipt.claimed, []);
      assert.deepEqual([(await world.row("c")).state, (await world.row("c")).epoch], ["ready", 0]);
    },
  ),

  storeCase("L15 older work that is not due, or not carried, stands in nobody's way", async (world) => {
    const held = await world.running("p");
    await world.create(
      world.newRun("delayed", { delayMs: 10 }),
      world.newRun("foreign", { publication: id.publication("painter") }),
    );
    const receipt = await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c", "p", { claim: true })],
        claim: claimBy(held),
      },
    );
    assert.equal(receipt.claimed.length, 1);
  }),

  storeCase(
    "L15 a delayed child, a queued one and one that is not carried are not claimed at once",
    async (world) => {
      const held = await world.running("p");
      const receipt = await world.step(
        held,
        { kind: "hold" },
        {
          create: [
            world.newChild("delayed", "p", { claim: true, delayMs: 5 }),
            world.newChild("foreign", "p", { claim: true, publication: id.publication("painter") }),
            world.newChild("queued", "p", { claim: true, threadId: id.thread("p") }),
          ],
          claim: claimBy(held),
        },
      );
      assert.deepEqual(receipt.claimed, []);
      assert.equal((await world.row("queued")).lane, false);
    },
  ),

  storeCase("L15 a wish to claim needs an incarnation that lives", async (world) => {
    const dead = await world.worker("w1");
    await world.store.deregisterWorker(world.tenant, dead);
    for (const [index, incarnation] of [dead, id.incarnation("nobody")].entries()) {
      const receipt = await world.committed({
        create: [world.newRun(`a${index}`, { claim: true })],
        claim: { incarnation, carries: CARRIES, parent: false },
      });
      assert.deepEqual(receipt.claimed, []);
      assert.equal((await world.row(`a${index}`)).state, "ready");
    }
  }),

  storeCase("L15 who ends a child may claim its waiting parent in the same commit", async (world) => {
    const child = await family(world);
    const receipt = await world.step(child, END, {
      deliver: [world.delivery("c", "p")],
      claim: claimBy(child, true),
    });
    assert.deepEqual(receipt.claimed, [
      { runId: id.run("p"), epoch: 2, version: 1, signalSeq: 1, controlSeq: 0, fruitlessClaims: 1 },
    ]);
    const row = await world.row("p");
    assert.deepEqual([row.state, row.claimedBy, row.dueAt], ["running", child.incarnation, null]);
    await world.step(world.held(receipt.claimed[0], child.incarnation));
  }),

  storeCase("L15 the parent is claimed too if the same commit also signals it", async (world) => {
    const child = await family(world);
    const receipt = await world.step(child, END, {
      signals: [world.signal("p")],
      deliver: [world.delivery("c", "p")],
      claim: claimBy(child, true),
    });
    assert.deepEqual(
      receipt.claimed.map((run) => [run.runId, run.signalSeq]),
      [[id.run("p"), 2]],
    );
  }),

  storeCase("L15 a parent that was signalled without a delivery is left ready", async (world) => {
    const child = await family(world);
    const receipt = await world.step(child, END, {
      signals: [world.signal("p")],
      claim: claimBy(child, true),
    });
    assert.deepEqual(receipt.claimed, []);
    assert.equal((await world.row("p")).state, "ready");
  }),

  storeCase("L15 a parent whose timer is due is no older work in the way of its own claim", async (world) => {
    const parent = await world.running("p");
    await world.step(
      parent,
      { kind: "park", state: "waiting", dueInMs: 1_000, signalSeqSeen: 0 },
      { create: [world.newChild("c", "p")] },
    );
    const child = await world.take("c", "w2");
    world.clock.advance(2_000);
    const receipt = await world.step(child, END, {
      deliver: [world.delivery("c", "p")],
      claim: claimBy(child, true),
    });
    assert.equal(receipt.claimed.length, 1);
  }),

  storeCase("L15 a parent that runs elsewhere, or was not delivered to, is not claimed", async (world) => {
    const parent = await world.running("p");
    await world.step(
      parent,
      { kind: "hold" },
      { create: [world.newChild("c", "p"), world.newChild("d", "p")] },
    );
    const child = await world.take("c", "w2");
    const receipt = await world.step(
      child,
      { kind: "hold" },
      {
        deliver: [world.delivery("c", "p", { kind: "wait", digest: "w" })],
        claim: claimBy(child, true),
      },
    );
    assert.deepEqual(receipt.claimed, []);
    assert.equal((await world.row("p")).claimedBy, parent.incarnation);
    await world.step(parent, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 1 });
    const still = await world.step(child, END, { claim: claimBy(child, true) });
    assert.deepEqual(still.claimed, []);
    assert.equal((await world.row("p")).state, "waiting");
  }),

  storeCase(
    "L15 the parent is left ready if older work is due, or if it is not wished for",
    async (world) => {
      const child = await family(world);
      await world.create(world.newRun("older"));
      world.clock.advance(1);
      const receipt = await world.step(child, END, {
        deliver: [world.delivery("c", "p")],
        claim: claimBy(child, true),
      });
      assert.deepEqual(receipt.claimed, []);
      assert.equal((await world.row("p")).state, "ready");
      await world.worker("w3");
      assert.deepEqual(await names(world, "w3"), ["older", "p"].map(id.run));
    },
  ),

  storeCase("L15 a parent that the worker does not carry is left ready", async (world) => {
    const painter = id.publication("painter");
    const child = await family(world, { publication: PUBLICATION });
    const receipt = await world.step(child, END, {
      deliver: [world.delivery("c", "p")],
      claim: claimBy(child, true, new Set([painter])),
    });
    assert.deepEqual(receipt.claimed, []);
    assert.equal((await world.row("p")).state, "ready");
  }),
];
