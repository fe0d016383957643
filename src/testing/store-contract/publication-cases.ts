import assert from "node:assert/strict";
import { storeCase, type StoreContractCase } from "./contract-case.ts";
import { id, type World } from "./world.ts";

const put = (world: World, version: string, name = "writer", body = `{"v":"${version}"}`) =>
  world.store.putPublication(world.tenant, { ref: id.publication(version), name, body });

/** Immutable releases of agents, and the head of each name. */
export const publicationCases: readonly StoreContractCase[] = [
  storeCase("L1 a publication is found by its ref and is the head of its name", async (world) => {
    await put(world, "writer-1");
    const row = {
      ref: id.publication("writer-1"),
      name: "writer",
      body: '{"v":"writer-1"}',
      publishedAt: world.clock.now(),
    };
    assert.deepEqual(await world.store.getPublication(world.tenant, row.ref), row);
    assert.deepEqual(await world.store.headPublication(world.tenant, "writer"), row);
    assert.deepEqual(await world.store.listPublications(world.tenant), [row]);
  }),

  storeCase("L1 publishing the same ref again changes nothing", async (world) => {
    await put(world, "writer-1");
    const before = await world.store.listPublications(world.tenant);
    world.clock.advance(100);
    await put(world, "writer-1", "writer", "another body");
    assert.deepEqual(await world.store.listPublications(world.tenant), before);
  }),

  storeCase("L1 the newest publication of a name is its head, also within one millisecond", async (world) => {
    await put(world, "writer-1");
    await put(world, "writer-2");
    await put(world, "painter-1", "painter");
    assert.equal(
      (await world.store.headPublication(world.tenant, "writer"))?.ref,
      id.publication("writer-2"),
    );
    await put(world, "writer-1");
    assert.equal(
      (await world.store.headPublication(world.tenant, "writer"))?.ref,
      id.publication("writer-2"),
    );
    const list = await world.store.listPublications(world.tenant);
    assert.deepEqual(
      list.map((row) => row.ref).sort(),
      ["writer-1", "writer-2", "painter-1"].map(id.publication).sort(),
    );
  }),

  storeCase("L1 what was not published is absent", async (world) => {
    assert.equal(await world.store.getPublication(world.tenant, id.publication("writer-1")), null);
    assert.equal(await world.store.headPublication(world.tenant, "writer"), null);
    assert.deepEqual(await world.store.listPublications(world.tenant), []);
  }),

  storeCase(
    "K5.6 of many concurrent publications under one ref the first body stands for all",
    async (world) => {
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => put(world, "writer-1", "writer", `body ${index}`)),
      );
      const list = await world.store.listPublications(world.tenant);
      assert.equal(list.length, 1);
      assert.deepEqual(await world.store.headPublication(world.tenant, "writer"), list[0]);
    },
  ),
];
