import assert from "node:assert/strict";
import { NO_LIMITS, type RunningLimits } from "../../runtime/ports/running-limits.ts";
import { durableCase, pairCase, needing, storeCase, type StoreContractCase } from "./contract-case.ts";
import { CARRIES, id, PUBLICATION, type Held, type World } from "./world.ts";

const END = { kind: "end", endKind: "completed" } as const;
const MINUTE = 60_000;

const limit = (world: World, limits: Partial<RunningLimits>): Promise<void> =>
  world.store.operations.setLimits(world.tenant, { ...NO_LIMITS, ...limits });

async function claimed(world: World, most = 10, carries = CARRIES): Promise<readonly string[]> {
  const incarnation = await world.worker("w1");
  return (await world.claim(incarnation, most, carries)).map((run) => run.runId);
}

const runs = (...names: readonly string[]): readonly string[] => names.map(id.run);

const claimBy = (held: Held, parent = false) => ({
  incarnation: held.incarnation,
  carries: CARRIES,
  parent,
});

/** How many Runs of a tenant, a tree and an agent run at the same time. */
const cases: readonly StoreContractCase[] = [
  storeCase("K4 limits are kept as they were set, by tenant, and are none at first", async (world) => {
    const { store, tenant } = world;
    assert.deepEqual(await store.operations.getLimits(tenant), NO_LIMITS);
    const limits = { tenant: 8, tree: 2, agents: { writer: 3, __proto__x: 1 } };
    await store.operations.setLimits(tenant, limits);
    assert.deepEqual(await store.operations.getLimits(tenant), limits);
    assert.deepEqual(await store.operations.getLimits(id.tenant("zeta")), NO_LIMITS);
    await assert.rejects(limit(world, { tree: -1 }), /limit of tree is -1/);
    await assert.rejects(limit(world, { agents: { writer: 1.5 } }), /limit of writer is 1\.5/);
    assert.deepEqual(await store.operations.getLimits(tenant), limits);
  }),

  storeCase("K4 a tenant's limit is what claims keep to; the rest stays ready", async (world) => {
    await world.create(world.newRun("a"), world.newRun("b"), world.newRun("c"));
    await limit(world, { tenant: 2 });
    assert.deepEqual(await claimed(world), runs("a", "b"));
    assert.deepEqual(await claimed(world), []);
    assert.equal((await world.row("c")).state, "ready");
    const stranger = world.as("zeta");
    await stranger.create(stranger.newRun("a"));
    assert.deepEqual(await claimed(stranger), runs("a"));
  }),

  storeCase("K4 an end, a park, a release and a dead worker each give the slot back", async (world) => {
    await limit(world, { tenant: 1 });
    await world.create(...["a", "b", "c", "d", "e", "f"].map((name) => world.newRun(name)));
    const a = await world.take("a");
    assert.deepEqual(await claimed(world), []);
    await world.step(a, END);
    const b = await world.take("b");
    await world.step(b, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 });
    const c = await world.take("c");
    world.clock.advance(1);
    await world.store.release(world.tenant, c.incarnation, [c]);
    const d = await world.take("d");
    world.clock.advance(1);
    await world.store.deregisterWorker(world.tenant, d.incarnation);
    const silent = await world.take("e", "w2");
    world.clock.advance(1_000);
    assert.deepEqual(await world.store.reapWorkers(world.tenant, 10), [silent.incarnation]);
    await world.worker("w3");
    const next = await world.claim(id.incarnation("w3"), 10);
    assert.deepEqual(
      next.map((run) => run.runId),
      runs("f"),
    );
    const counts = await world.store.operations.countRunning(world.tenant, id.run("f"));
    assert.deepEqual(counts, { tenant: 1, tree: 1, agents: { writer: 1 } });
  }),

  storeCase("K4.1 children that ended hold no slot of their tree", async (world) => {
    await limit(world, { tree: 2 });
    const parent = await world.running("p");
    for (let child = 0; child < 12; child += 1) {
      const name = `c${child}`;
      await world.step(parent, { kind: "hold" }, { create: [world.newChild(name, "p")] });
      await world.step(await world.take(name), END);
    }
    const counts = await world.store.operations.countRunning(world.tenant, id.run("p"));
    assert.deepEqual([counts.tenant, counts.tree], [1, 1]);
  }),

  storeCase("K4 of a tree at its limit nothing is claimed, of others it is, in order", async (world) => {
    await limit(world, { tree: 1 });
    const parent = await world.running("p");
    const children = ["a", "b", "c"].map((name) => world.newChild(name, "p"));
    await world.step(parent, { kind: "hold" }, { create: children });
    world.clock.advance(1);
    await world.create(world.newRun("x"), world.newRun("y"));
    assert.deepEqual(await claimed(world, 1), runs("x"));
    assert.deepEqual(await claimed(world), runs("y"));
    await world.step(parent, { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 });
    assert.deepEqual(await claimed(world), runs("a"));
    assert.deepEqual(await claimed(world), []);
    await limit(world, { tree: 2 });
    assert.deepEqual(await claimed(world), runs("b"));
    await limit(world, {});
    assert.deepEqual(await claimed(world), runs("c"));
  }),

  storeCase("K4 one claim takes from a tree no more than fits, and fills up elsewhere", async (world) => {
    await limit(world, { tree: 2, tenant: 5 });
    const parent = await world.running("p");
    const children = ["a", "b", "c", "d"].map((name) => world.newChild(name, "p"));
    await world.step(parent, { kind: "hold" }, { create: children });
    world.clock.advance(1);
    await world.create(...["u", "v", "w", "x"].map((name) => world.newRun(name)));
    assert.deepEqual(await claimed(world), runs("a", "u", "v", "w"));
  }),

  storeCase("K4 an agent's limit counts all its versions, and leaves other agents alone", async (world) => {
    const newer = id.publication("writer").replace(/.$/, (last) => (last === "0" ? "1" : "0")) as never;
    const painter = id.publication("painter");
    const carries = new Set<string>([PUBLICATION, newer, painter]);
    await limit(world, { agents: { writer: 1 } });
    await world.create(
      world.newRun("a"),
      world.newRun("b", { publication: newer }),
      world.newRun("c", { publication: painter, agent: "painter" }),
    );
    assert.deepEqual(await claimed(world, 10, carries), runs("a", "c"));
    assert.deepEqual(await claimed(world, 10, carries), []);
    const counts = await world.store.operations.countRunning(world.tenant, null);
    assert.deepEqual(counts, { tenant: 2, tree: 0, agents: { writer: 1, painter: 1 } });
  }),

  storeCase("K4 a lower limit stops nothing that runs, and 0 lets nothing begin", async (world) => {
    await world.create(world.newRun("a"), world.newRun("b"), world.newRun("c"));
    assert.deepEqual(await claimed(world, 2), runs("a", "b"));
    await limit(world, { tenant: 0 });
    assert.equal((await world.store.countRuns(world.tenant)).running, 2);
    const incarnation = await world.worker("w1");
    const { held } = await world.store.heartbeat(world.tenant, incarnation);
    assert.equal(held.length, 2);
    await world.step(world.held(held[0], incarnation));
    assert.deepEqual(await claimed(world), []);
    await limit(world, { tenant: 3 });
    assert.deepEqual(await claimed(world), runs("c"));
  }),

  storeCase("K4 a commit's own claims keep to the limits", async (world) => {
    await limit(world, { tree: 2 });
    const parent = await world.running("p");
    const children = ["a", "b"].map((name) => world.newChild(name, "p", { claim: true }));
    const receipt = await world.step(parent, { kind: "hold" }, { create: children, claim: claimBy(parent) });
    assert.deepEqual(
      receipt.claimed.map((run) => run.runId),
      runs("a"),
    );
    assert.equal((await world.row("b")).state, "ready");
  }),

  storeCase("K4 a commit that lets go of its Run may use the slot", async (world) => {
    await limit(world, { tenant: 1 });
    const parent = await world.running("p");
    const delegated = await world.step(
      parent,
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
      { create: [world.newChild("c", "p", { claim: true })], claim: claimBy(parent) },
    );
    assert.deepEqual(
      delegated.claimed.map((run) => run.runId),
      runs("c"),
    );
    const child = world.held(delegated.claimed[0], parent.incarnation);
    const ended = await world.step(child, END, {
      deliver: [world.delivery("c", "p")],
      claim: claimBy(child, true),
    });
    assert.deepEqual(
      ended.claimed.map((run) => run.runId),
      runs("p"),
    );
  }),

  storeCase("K4 older work that the freed slot fits goes before a commit's own claims", async (world) => {
    await limit(world, { tenant: 1 });
    const parent = await world.running("p");
    await world.create(world.newRun("older"));
    const receipt = await world.step(
      parent,
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
      { create: [world.newChild("c", "p", { claim: true })], claim: claimBy(parent) },
    );
    assert.deepEqual(receipt.claimed, []);
    assert.deepEqual(await claimed(world), runs("older"));
  }),

  storeCase(
    "K4 older work that fits no limit does not stand in the way of a commit's claims",
    async (world) => {
      const painter = id.publication("painter");
      const carries = new Set<string>([PUBLICATION, painter]);
      await limit(world, { agents: { painter: 0 } });
      await world.create(world.newRun("blocked", { publication: painter }));
      world.clock.advance(1);
      await world.create(world.newRun("p"));
      const incarnation = await world.worker("w1");
      const [claim] = await world.claim(incarnation, 1, carries);
      const parent = world.held(claim, incarnation);
      const receipt = await world.step(
        parent,
        { kind: "hold" },
        {
          create: [world.newChild("c", "p", { claim: true })],
          claim: { incarnation, carries, parent: false },
        },
      );
      assert.equal(receipt.claimed.length, 1);
    },
  ),

  storeCase("K4 a park that a signal undid keeps its slot", async (world) => {
    await limit(world, { tenant: 1 });
    const parent = await world.running("p");
    await world.committed({ signals: [world.signal("p")] });
    const receipt = await world.step(
      parent,
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
      { create: [world.newChild("c", "p", { claim: true })], claim: claimBy(parent) },
    );
    assert.deepEqual([receipt.parked, receipt.claimed.length], [false, 0]);
    assert.deepEqual(await claimed(world), []);
  }),

  storeCase(
    "K7.4 under a full limit and a stream of urgent work, a low priority begins in time",
    async (world) => {
      await limit(world, { tenant: 1 });
      const busy = await world.running("busy");
      await world.create(world.newRun("low"));
      let held = busy;
      for (let minute = 0; minute <= 10; minute += 1) {
        await world.create(world.newRun(`urgent${minute}`, { priority: 9 }));
        world.clock.advance(MINUTE);
        await world.step(held, END);
        const incarnation = await world.worker("w1");
        const [claim] = await world.claim(incarnation);
        held = world.held(claim, incarnation);
        if (claim?.runId === id.run("low")) {
          assert.ok(minute <= 9, `it began after ${minute + 1} minutes`);
          return;
        }
      }
      assert.fail("the low priority starved");
    },
  ),

  durableCase(
    "K4 limits outlive the store's closing, and so does what they count",
    async (world) => {
      await limit(world, { tenant: 1 });
      await world.create(world.newRun("a"), world.newRun("b"));
      await world.take("a");
    },
    async (world) => assert.deepEqual(await claimed(world), []),
  ),

  pairCase("K4 a limit that one process sets holds for the other's next claim", async (first, second) => {
    await first.create(first.newRun("a"), first.newRun("b"), first.newRun("c"));
    await second.take("a");
    await limit(first, { tenant: 2 });
    assert.deepEqual(await claimed(second), runs("b"));
    await limit(first, { tenant: 3 });
    assert.deepEqual(await claimed(second), runs("c"));
  }),
];

export const limitCases: readonly StoreContractCase[] = cases.map((one) => needing("limits", one));
