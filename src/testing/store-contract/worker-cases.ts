import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, PUBLICATION } from "./world.ts";

const LEASE = 30_000;

/** Incarnations: they live, beat, and die once. */
export const workerCases: readonly StoreContractCase[] = [
  storeCase("L32 a registered incarnation is listed with what it carries", async (world) => {
    const incarnation = await world.worker("w1", "host-b");
    assert.deepEqual(await world.store.listWorkers(world.tenant), [
      {
        tenant: world.tenant,
        incarnation,
        name: "worker-w1",
        host: "host-b",
        pid: 4711,
        startedAt: world.clock.now(),
        heartbeatAt: world.clock.now(),
        dead: false,
        publications: [PUBLICATION],
      },
    ]);
  }),

  storeCase("L32 two incarnations under one name are two workers", async (world) => {
    for (const name of ["w1", "w2"]) {
      await world.store.registerWorker(world.tenant, {
        incarnation: id.incarnation(name),
        name: "same",
        host: "host-a",
        pid: 1,
        publications: [],
      });
    }
    await world.store.deregisterWorker(world.tenant, id.incarnation("w1"));
    const workers = await world.store.listWorkers(world.tenant);
    assert.deepEqual(
      workers.map((worker) => [worker.incarnation, worker.dead]),
      [
        [id.incarnation("w1"), true],
        [id.incarnation("w2"), false],
      ],
    );
  }),

  storeCase("L4 a heartbeat reads back what the store says is held", async (world) => {
    const incarnation = await world.worker("w1");
    assert.deepEqual(await world.store.heartbeat(world.tenant, incarnation), { alive: true, held: [] });
    await world.create(world.newRun("a"), world.newRun("b"));
    const claimed = await world.claim(incarnation, 5);
    const beat = await world.store.heartbeat(world.tenant, incarnation);
    assert.equal(beat.alive, true);
    const byId = (a: { runId: string }, b: { runId: string }) => (a.runId < b.runId ? -1 : 1);
    assert.deepEqual([...beat.held].sort(byId), [...claimed].sort(byId));
    await world.step(world.held(claimed[0], incarnation), { kind: "end", endKind: "completed" });
    const later = await world.store.heartbeat(world.tenant, incarnation);
    assert.deepEqual(
      later.held.map((run) => run.runId),
      [claimed[1]?.runId],
    );
  }),

  storeCase("L4 a heartbeat of an unknown incarnation is not alive and holds nothing", async (world) => {
    const beat = await world.store.heartbeat(world.tenant, id.incarnation("nobody"));
    assert.deepEqual(beat, { alive: false, held: [] });
    assert.deepEqual(await world.store.listWorkers(world.tenant), []);
  }),

  storeCase("L4 a heartbeat in time keeps the lease", async (world) => {
    const held = await world.running("a");
    for (let beats = 0; beats < 4; beats += 1) {
      world.clock.advance(LEASE - 1);
      await world.store.heartbeat(world.tenant, held.incarnation);
      assert.deepEqual(await world.store.reapWorkers(world.tenant, LEASE), []);
    }
    world.clock.advance(LEASE);
    assert.deepEqual(
      await world.store.reapWorkers(world.tenant, LEASE),
      [],
      "exactly the lease is still in time",
    );
    await world.step(held);
  }),

  storeCase(
    "K7.3 reaping frees the Runs of a silent incarnation by the store's time, for anyone",
    async (world) => {
      const held = await world.running("a");
      world.clock.advance(LEASE + 1);
      await world.worker("w2", "host-b");
      assert.deepEqual(await world.store.reapWorkers(world.tenant, LEASE), [held.incarnation]);
      const row = await world.row("a");
      assert.deepEqual(
        [row.state, row.claimedBy, row.epoch, row.dueAt, row.fruitlessClaims],
        ["ready", null, held.epoch + 1, world.clock.now(), 1],
      );
      const next = await world.take("a", "w2");
      assert.equal(next.epoch, held.epoch + 2);
      assert.deepEqual(await world.store.reapWorkers(world.tenant, LEASE), []);
    },
  ),

  storeCase(
    "K7.1 a zombie's commit is fenced off, its successor's stands, and it cannot beat again",
    async (world) => {
      const zombie = await world.running("a");
      world.clock.advance(LEASE + 1);
      const successor = await world.worker("w1b");
      await world.store.reapWorkers(world.tenant, LEASE);
      const [claimed] = await world.claim(successor);
      const held = world.held(claimed, successor);
      await world.step(held);
      const late = await world.commit({ lane: world.lane(zombie, { kind: "end", endKind: "completed" }) });
      assert.deepEqual(late, { kind: "stale", reason: "epoch" });
      assert.deepEqual(await world.store.heartbeat(world.tenant, zombie.incarnation), {
        alive: false,
        held: [],
      });
      assert.deepEqual(await world.claim(zombie.incarnation), []);
      await world.step(held, { kind: "end", endKind: "completed" });
    },
  ),

  storeCase("K7.1 dead is for good: a beat and a new registration change nothing", async (world) => {
    const incarnation = await world.worker("w1");
    await world.create(world.newRun("a"));
    world.clock.advance(LEASE + 1);
    assert.deepEqual(await world.store.reapWorkers(world.tenant, LEASE), [incarnation]);
    await world.worker("w1");
    assert.equal((await world.store.heartbeat(world.tenant, incarnation)).alive, false);
    assert.deepEqual(await world.claim(incarnation), []);
    assert.equal((await world.store.listWorkers(world.tenant))[0]?.dead, true);
    assert.deepEqual(await world.store.reapWorkers(world.tenant, LEASE), []);
  }),

  storeCase("K7.1 a zombie is fenced off before anybody has claimed its Run again", async (world) => {
    const zombie = await world.running("a");
    world.clock.advance(LEASE + 1);
    await world.store.reapWorkers(world.tenant, LEASE);
    assert.deepEqual(await world.commit({ lane: world.lane(zombie) }), { kind: "stale", reason: "epoch" });
  }),

  storeCase("L4 of many concurrent reapers one reports a death", async (world) => {
    const held = await world.running("a");
    world.clock.advance(LEASE + 1);
    const reports = await Promise.all(
      Array.from({ length: 10 }, () => world.store.reapWorkers(world.tenant, LEASE)),
    );
    assert.deepEqual(reports.flat(), [held.incarnation]);
    assert.equal((await world.row("a")).epoch, held.epoch + 1);
  }),

  storeCase("L4 a leaving incarnation frees its Runs under a higher epoch and is dead", async (world) => {
    const held = await world.running("a");
    await world.store.deregisterWorker(world.tenant, held.incarnation);
    const row = await world.row("a");
    assert.deepEqual(
      [row.state, row.claimedBy, row.epoch, row.dueAt],
      ["ready", null, held.epoch + 1, world.clock.now()],
    );
    assert.deepEqual(await world.commit({ lane: world.lane(held) }), { kind: "stale", reason: "epoch" });
    assert.equal((await world.store.listWorkers(world.tenant))[0]?.dead, true);
  }),

  storeCase("L4 a release makes the Run ready under a higher epoch and is no death", async (world) => {
    const held = await world.running("a");
    await world.store.release(world.tenant, held.incarnation, [{ runId: held.runId, epoch: held.epoch }]);
    const row = await world.row("a");
    assert.deepEqual(
      [row.state, row.claimedBy, row.epoch, row.dueAt, row.fruitlessClaims, row.version],
      ["ready", null, held.epoch + 1, world.clock.now(), 0, 0],
    );
    assert.deepEqual(await world.commit({ lane: world.lane(held) }), { kind: "stale", reason: "epoch" });
    assert.equal((await world.store.heartbeat(world.tenant, held.incarnation)).alive, true);
    const log = await world.log();
    assert.equal(log.length, 1, "a release writes no fact");
  }),

  storeCase("L4 a release under a stale epoch, or of another's Run, is ignored", async (world) => {
    const held = await world.running("a");
    const other = await world.worker("w2");
    const before = await world.row("a");
    await world.store.release(world.tenant, held.incarnation, [{ runId: held.runId, epoch: held.epoch - 1 }]);
    await world.store.release(world.tenant, other, [{ runId: held.runId, epoch: held.epoch }]);
    await world.store.release(world.tenant, held.incarnation, [{ runId: id.run("none"), epoch: 1 }]);
    assert.deepEqual(await world.row("a"), before);
    await world.step(held);
  }),

  storeCase("L4 ended and parked Runs are not freed with their last holder", async (world) => {
    const ended = await world.ended("a");
    await world.parked("b");
    await world.store.deregisterWorker(world.tenant, ended.incarnation);
    assert.deepEqual([(await world.row("a")).state, (await world.row("b")).state], ["ended", "waiting"]);
    assert.equal((await world.row("b")).epoch, 1);
  }),
];
