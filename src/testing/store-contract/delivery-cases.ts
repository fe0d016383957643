import assert from "node:assert/strict";
import type { InboxRow } from "../../runtime/ports/store.ts";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type World } from "./world.ts";

async function envelope(world: World, child: string, parent: string): Promise<InboxRow | undefined> {
  const rows = await world.store.listInbox(world.tenant, id.run(parent));
  return rows.find((row) => row.delegationId === id.delegation(child));
}

const delegation = (world: World, child: string) =>
  world.store.getDelegation(world.tenant, id.delegation(child));

/** A parent that waits for a running child under an open relationship. */
async function family(world: World) {
  const parent = await world.running("p");
  await world.step(
    parent,
    { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
    { create: [world.newChild("c", "p")], openDelegations: [world.opening("c", "p")] },
  );
  return { parent, child: await world.take("c", "w2") };
}

const END = { kind: "end", endKind: "completed" } as const;

/** What comes back from a child into its parent's inbox. */
export const deliveryCases: readonly StoreContractCase[] = [
  storeCase("L15 the child's end, the envelope and the parent's wake are one commit", async (world) => {
    const { child } = await family(world);
    await world.step(child, END, { deliver: [world.delivery("c", "p")] });
    assert.equal((await world.row("c")).state, "ended");
    const parent = await world.row("p");
    assert.deepEqual([parent.state, parent.dueAt, parent.signalSeq], ["ready", world.clock.now(), 1]);
    assert.deepEqual(await envelope(world, "c", "p"), {
      tenant: world.tenant,
      ...world.delivery("c", "p"),
      status: "unread",
    });
    const pending = await world.store.readPending(world.tenant, id.run("p"), 0);
    assert.deepEqual(pending.inbox, [await envelope(world, "c", "p")]);
    assert.deepEqual([pending.signalSeq, pending.signals], [1, []]);
  }),

  storeCase("L15 a stale end delivers nothing and wakes nobody", async (world) => {
    const { child } = await family(world);
    const before = await world.snapshot("p", "c");
    const outcome = await world.commit({
      lane: world.lane({ ...child, version: 5 }, END),
      deliver: [world.delivery("c", "p")],
    });
    assert.deepEqual(outcome, { kind: "stale", reason: "version" });
    assert.deepEqual(await world.snapshot("p", "c"), before);
  }),

  storeCase("L15 deliveries of several children each raise the parent's signal", async (world) => {
    await world.running("p");
    await world.committed({ deliver: ["c1", "c2", "c3"].map((child) => world.delivery(child, "p")) });
    assert.equal((await world.row("p")).signalSeq, 3);
    assert.equal((await world.store.listInbox(world.tenant, id.run("p"))).length, 3);
  }),

  storeCase("L15 a delivery does not take a running parent from its holder", async (world) => {
    const held = await world.running("p");
    await world.committed({ deliver: [world.delivery("c", "p")], create: [world.newRun("x")] });
    const row = await world.row("p");
    assert.deepEqual([row.state, row.claimedBy, row.version], ["running", held.incarnation, 0]);
    const receipt = await world.step(held, {
      kind: "park",
      state: "waiting",
      dueInMs: null,
      signalSeqSeen: 0,
    });
    assert.equal(receipt.parked, false);
  }),

  storeCase("L16 the same result again, by another operation, is nothing at all", async (world) => {
    const { child } = await family(world);
    await world.step(child, END, { deliver: [world.delivery("c", "p")] });
    const before = await world.row("p");
    const receipt = await world.committed({
      deliver: [world.delivery("c", "p")],
      create: [world.newRun("x")],
    });
    assert.deepEqual(receipt.conflicts, []);
    assert.deepEqual(await world.row("p"), before);
    assert.equal((await world.store.listInbox(world.tenant, id.run("p"))).length, 1);
  }),

  storeCase("L16 the same result again leaves a consumed envelope consumed", async (world) => {
    const held = await world.running("p");
    await world.committed({ deliver: [world.delivery("c", "p")], create: [world.newRun("x")] });
    const { digest } = world.delivery("c", "p");
    await world.step(
      held,
      { kind: "hold" },
      { readInbox: [{ delegationId: id.delegation("c"), digest, status: "consumed" }] },
    );
    await world.committed({ deliver: [world.delivery("c", "p")], create: [world.newRun("y")] });
    assert.equal((await envelope(world, "c", "p"))?.status, "consumed");
    assert.equal((await world.row("p")).signalSeq, 1);
  }),

  storeCase(
    "L16 of two results that differ the first stands and the second is named a conflict",
    async (world) => {
      await world.parked("p");
      await world.committed({ deliver: [world.delivery("c", "p")], create: [world.newRun("x")] });
      const before = await world.row("p");
      const receipt = await world.committed({
        deliver: [world.delivery("c", "p", { digest: "other", body: "{}" }), world.delivery("d", "p")],
        create: [world.newRun("y")],
      });
      assert.deepEqual(receipt.conflicts, [id.delegation("c")]);
      assert.equal((await envelope(world, "c", "p"))?.digest, world.delivery("c", "p").digest);
      assert.equal((await envelope(world, "d", "p"))?.status, "unread");
      assert.equal((await world.row("p")).signalSeq, before.signalSeq + 1);
    },
  ),

  storeCase("L16 no wait and no resumption replaces a result", async (world) => {
    await world.running("p");
    await world.committed({ deliver: [world.delivery("c", "p")], create: [world.newRun("x")] });
    const receipt = await world.committed({
      deliver: [world.delivery("c", "p", { kind: "wait", digest: "wait" })],
      create: [world.newRun("y")],
    });
    assert.deepEqual(receipt.conflicts, [id.delegation("c")]);
    assert.equal((await envelope(world, "c", "p"))?.kind, "result");
  }),

  storeCase("L16 of many concurrent results that differ exactly one stands", async (world) => {
    await world.running("p");
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        world.commit({
          deliver: [world.delivery("c", "p", { digest: `digest-${index}` })],
          create: [world.newRun(`x${index}`)],
        }),
      ),
    );
    const receipts = outcomes.filter((outcome) => outcome.kind === "committed");
    assert.equal(receipts.length, 12);
    const conflicts = receipts.flatMap(({ receipt }) => receipt.conflicts);
    assert.equal(conflicts.length, 11);
    assert.equal((await world.row("p")).signalSeq, 1);
    assert.equal((await world.store.listInbox(world.tenant, id.run("p"))).length, 1);
  }),

  storeCase("L33 a child's await and the wait in its parent's inbox are one commit", async (world) => {
    const { child } = await family(world);
    await world.step(
      child,
      { kind: "park", state: "awaiting", dueInMs: null, signalSeqSeen: 0 },
      {
        deliver: [world.delivery("c", "p", { kind: "wait", digest: "wait-1" })],
        openTickets: [
          { ticketId: id.ticket("t"), runId: child.runId, kind: "approval", deadlineInMs: null, body: "{}" },
        ],
      },
    );
    assert.deepEqual([(await world.row("c")).state, (await world.row("p")).state], ["awaiting", "ready"]);
    const entry = await envelope(world, "c", "p");
    assert.deepEqual([entry?.kind, entry?.status], ["wait", "unread"]);
    const [ticket] = await world.store.listTickets(world.tenant, {
      rootRunId: id.run("p"),
      open: true,
      limit: 10,
    });
    assert.equal(ticket?.runId, child.runId);
  }),

  storeCase(
    "L33 a wait gives way to a resumption and that to the result, each unread and signalled",
    async (world) => {
      const held = await world.running("p");
      const kinds = ["wait", "resumed", "wait", "result"] as const;
      for (const [index, kind] of kinds.entries()) {
        const delivery = world.delivery("c", "p", { kind, digest: `d${index}`, body: `{"n":${index}}` });
        await world.committed({ deliver: [delivery], create: [world.newRun(`x${index}`)] });
        assert.deepEqual(await envelope(world, "c", "p"), {
          tenant: world.tenant,
          ...delivery,
          status: "unread",
        });
        assert.equal((await world.row("p")).signalSeq, index + 1);
        await world.step(
          held,
          { kind: "hold" },
          {
            readInbox: [{ delegationId: id.delegation("c"), digest: `d${index}`, status: "consumed" }],
          },
        );
        assert.equal((await envelope(world, "c", "p"))?.status, "consumed");
      }
      assert.equal((await world.store.listInbox(world.tenant, id.run("p"))).length, 1);
    },
  ),

  storeCase(
    "L15 reading an envelope moves the one that was seen; a newer one stays unread",
    async (world) => {
      const held = await world.running("p");
      await world.committed({
        deliver: [world.delivery("c", "p", { kind: "wait", digest: "old" })],
        create: [world.newRun("x")],
      });
      await world.committed({
        deliver: [world.delivery("c", "p", { digest: "new" })],
        create: [world.newRun("y")],
      });
      await world.step(
        held,
        { kind: "hold" },
        {
          readInbox: [{ delegationId: id.delegation("c"), digest: "old", status: "consumed" }],
        },
      );
      const entry = await envelope(world, "c", "p");
      assert.deepEqual([entry?.digest, entry?.status], ["new", "unread"]);
      assert.equal((await world.store.readPending(world.tenant, id.run("p"), 0)).inbox.length, 1);
    },
  ),

  storeCase("L15 pending shows unread envelopes only", async (world) => {
    const held = await world.running("p");
    await world.committed({
      deliver: ["c1", "c2"].map((child) => world.delivery(child, "p")),
      create: [world.newRun("x")],
    });
    await world.step(
      held,
      { kind: "hold" },
      {
        readInbox: [
          {
            delegationId: id.delegation("c1"),
            digest: world.delivery("c1", "p").digest,
            status: "discarded",
          },
        ],
      },
    );
    const { inbox } = await world.store.readPending(world.tenant, held.runId, 0);
    assert.deepEqual(
      inbox.map((row) => row.delegationId),
      [id.delegation("c2")],
    );
    assert.equal((await envelope(world, "c1", "p"))?.status, "discarded");
  }),

  storeCase(
    "L17 a result for an ended parent is kept as discarded and closes the relationship",
    async (world) => {
      const { child } = await family(world);
      await world.committed({ signals: [world.signal("p", { control: true })] });
      const parent = await world.take("p");
      await world.step(
        parent,
        { kind: "end", endKind: "canceled" },
        { cancelDelegations: [id.delegation("c")] },
      );
      assert.equal((await delegation(world, "c"))?.status, "cancel_requested");
      await world.step(child, END, { deliver: [world.delivery("c", "p")] });
      const entry = await envelope(world, "c", "p");
      assert.deepEqual([entry?.status, entry?.body], ["discarded", world.delivery("c", "p").body]);
      assert.equal((await delegation(world, "c"))?.status, "closed");
      assert.equal((await world.row("p")).state, "ended");
      assert.deepEqual((await world.store.readPending(world.tenant, id.run("p"), 0)).inbox, []);
    },
  ),

  storeCase("L17 a wait for an ended parent is discarded and closes nothing", async (world) => {
    const { child } = await family(world);
    await world.committed({ signals: [world.signal("p")] });
    await world.step(await world.take("p"), END, { cancelDelegations: [id.delegation("c")] });
    await world.step(
      child,
      { kind: "hold" },
      { deliver: [world.delivery("c", "p", { kind: "wait", digest: "w" })] },
    );
    assert.equal((await envelope(world, "c", "p"))?.status, "discarded");
    assert.equal((await delegation(world, "c"))?.status, "cancel_requested");
  }),

  storeCase("L17 a delivery of the commit that ends its parent is discarded", async (world) => {
    const held = await world.running("p");
    await world.step(held, END, { deliver: [world.delivery("c", "p")] });
    assert.equal((await envelope(world, "c", "p"))?.status, "discarded");
  }),

  storeCase("L15 a delivery for a parent without a Run row is kept as discarded", async (world) => {
    const receipt = await world.committed({
      deliver: [world.delivery("c", "gone")],
      create: [world.newRun("x")],
    });
    assert.deepEqual(receipt.conflicts, []);
    assert.equal((await envelope(world, "c", "gone"))?.status, "discarded");
    assert.equal(await world.store.getRun(world.tenant, id.run("gone")), null);
  }),
];
