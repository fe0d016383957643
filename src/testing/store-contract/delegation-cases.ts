import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type World } from "./world.ts";

const END = { kind: "end", endKind: "completed" } as const;

const delegation = (world: World, child: string) =>
  world.store.getDelegation(world.tenant, id.delegation(child));

/** A waiting parent and its running child under an open relationship. */
async function family(world: World) {
  const parent = await world.running("p");
  await world.step(
    parent,
    { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
    { create: [world.newChild("c", "p")], openDelegations: [world.opening("c", "p")] },
  );
  return { parent, child: await world.take("c", "w2") };
}

/** Relationships: opened with the child, canceled by intent, closed for good. */
export const delegationCases: readonly StoreContractCase[] = [
  storeCase("L14 the relationship and its child are one commit", async (world) => {
    await family(world);
    assert.deepEqual(await delegation(world, "c"), {
      tenant: world.tenant,
      ...world.opening("c", "p"),
      status: "open",
      intentDelivered: false,
    });
    const row = await world.row("c");
    assert.deepEqual(
      [row.parentRunId, row.rootRunId, row.delegationId, row.depth],
      [id.run("p"), id.run("p"), id.delegation("c"), 1],
    );
  }),

  storeCase("L14 opening a relationship again keeps the first", async (world) => {
    const { parent } = await family(world);
    await world.committed({
      rootRunId: parent.runId,
      closeDelegations: [id.delegation("c")],
      create: [world.newRun("x")],
    });
    await world.committed({
      create: [world.newRun("y")],
      openDelegations: [{ ...world.opening("c", "p"), target: "other" }],
    });
    const row = await delegation(world, "c");
    assert.deepEqual([row?.status, row?.target], ["closed", "writer"]);
  }),

  storeCase("L17 a cancel is an intent until it is committed on the child", async (world) => {
    const { child } = await family(world);
    const intents = () => world.store.pendingIntents(world.tenant, 10);
    assert.deepEqual(await intents(), []);
    const cancel = [id.delegation("c")];
    await world.committed({ signals: [world.signal("p", { control: true })], cancelDelegations: cancel });
    const row = await delegation(world, "c");
    assert.deepEqual([row?.status, row?.intentDelivered], ["cancel_requested", false]);
    assert.deepEqual(await intents(), [row]);
    await world.committed({ signals: [world.signal("c", { control: true })], intentsDelivered: cancel });
    assert.deepEqual(await intents(), []);
    assert.equal((await delegation(world, "c"))?.intentDelivered, true);
    assert.equal((await delegation(world, "c"))?.status, "cancel_requested");
    assert.equal((await world.row("c")).controlSeq, 1);
    assert.equal((await world.row("c")).claimedBy, child.incarnation);
  }),

  storeCase(
    "L17 a closed relationship is never reopened, and has no intent left to deliver",
    async (world) => {
      await family(world);
      const ids = [id.delegation("c")];
      await world.committed({ signals: [world.signal("p")], cancelDelegations: ids });
      await world.committed({ signals: [world.signal("p")], closeDelegations: ids });
      assert.deepEqual(await world.store.pendingIntents(world.tenant, 10), []);
      await world.committed({ signals: [world.signal("p")], cancelDelegations: ids });
      assert.equal((await delegation(world, "c"))?.status, "closed");
      assert.deepEqual(await world.store.pendingIntents(world.tenant, 10), []);
    },
  ),

  storeCase("L17 pending intents keep to their limit", async (world) => {
    const held = await world.running("p");
    const children = ["c1", "c2", "c3"];
    await world.step(
      held,
      { kind: "hold" },
      {
        create: children.map((child) => world.newChild(child, "p")),
        openDelegations: children.map((child) => world.opening(child, "p")),
      },
    );
    await world.step(held, { kind: "hold" }, { cancelDelegations: children.map(id.delegation) });
    assert.equal((await world.store.pendingIntents(world.tenant, 2)).length, 2);
    assert.equal((await world.store.pendingIntents(world.tenant, 10)).length, 3);
  }),

  storeCase("L10 an open relationship of a live parent without a child's row is an orphan", async (world) => {
    const held = await world.running("p");
    const orphans = async () =>
      (await world.store.orphanedDelegations(world.tenant, 10)).map((row) => row.delegationId).sort();
    await world.step(
      held,
      { kind: "hold" },
      {
        create: [world.newChild("c", "p")],
        openDelegations: ["c", "lost", "closed", "canceled", "late"].map((child) =>
          world.opening(child, "p"),
        ),
      },
    );
    await world.step(
      held,
      { kind: "hold" },
      {
        closeDelegations: [id.delegation("closed")],
        cancelDelegations: [id.delegation("canceled")],
      },
    );
    assert.deepEqual(await orphans(), ["lost", "late"].map(id.delegation).sort());
    await world.create(world.newChild("late", "p"));
    assert.deepEqual(await orphans(), [id.delegation("lost")]);
    await world.step(held, END);
    assert.deepEqual(await orphans(), []);
  }),

  storeCase("L14 relationships are listed by tree and by parent", async (world) => {
    const p = await world.running("p");
    await world.step(
      p,
      { kind: "hold" },
      {
        create: [world.newChild("c", "p")],
        openDelegations: [world.opening("c", "p")],
      },
    );
    const c = await world.take("c", "w2");
    await world.step(
      c,
      { kind: "hold" },
      {
        openDelegations: [{ ...world.opening("g", "c"), rootRunId: id.run("p") }],
      },
    );
    const list = async (filter: {
      rootRunId?: typeof p.runId;
      parentRunId?: typeof p.runId;
      limit: number;
    }) => (await world.store.listDelegations(world.tenant, filter)).map((row) => row.childRunId);
    assert.deepEqual(await list({ rootRunId: id.run("p"), limit: 10 }), [id.run("c"), id.run("g")]);
    assert.deepEqual(await list({ parentRunId: id.run("c"), limit: 10 }), [id.run("g")]);
    assert.deepEqual(await list({ rootRunId: id.run("p"), limit: 1 }), [id.run("c")]);
    assert.deepEqual(await list({ rootRunId: id.run("c"), limit: 10 }), []);
  }),
];
