import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { Store } from "../../src/runtime/ports/store.ts";
import { verifyStore } from "../../src/runtime/verify/verify-store.ts";
import { fn } from "../support/agents.ts";
import { onEachStore } from "../support/world.ts";

const child = fn("child", (_ctx, input) => ({ said: input }));
const parent = fn("parent", async (ctx, input) => ctx.run(child, input), { roster: [child] });
const talker = modelAgent({
  name: "talker",
  instructions: "Talk.",
  model: scriptedModel(({ prompt }) => `heard ${prompt.filter((one) => one.role !== "system").length}`),
});

/** The store with one answer changed on its way. */
function changed<Name extends keyof Store>(store: Store, name: Name, method: Store[Name]): Store {
  return new Proxy(store, {
    get(target, asked) {
      if (asked === name) return method;
      const member: unknown = Reflect.get(target, asked, target);
      return typeof member === "function" ? (member as () => unknown).bind(target) : member;
    },
  });
}

onEachStore("Retention", (open) => {
  test("L2 what is pruned is gone with its tombstone to show, and verify accepts it", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [parent] });
    const { store, tenant } = errand;
    const old = await errand.start(parent, "old");
    await old.result();
    await world.pass(1_000);
    const young = await errand.start(parent, "young");
    await young.result();
    const { endedAt } = await young.status();
    const pruned = await store.operations.prune(tenant, { endedBefore: endedAt ?? 0, limit: 10 });
    expect(pruned).toEqual({ trees: 1, runs: 2 });
    await expect(errand.status(old.runId)).rejects.toThrow(/NOT_FOUND/);
    expect((await errand.list({ rootsOnly: true })).map((one) => one.runId)).toEqual([young.runId]);
    expect(await verifyStore(store, tenant)).toMatchObject({ problems: [], runs: 2, pruned: 1 });
  });

  test("L2 verify tells of rows that a pruned tree has left behind", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [parent] });
    const { store, tenant } = errand;
    const run = await errand.start(parent, "old");
    await run.result();
    const row = await store.getRun(tenant, run.runId);
    await world.pass(1_000);
    await store.operations.prune(tenant, { endedBefore: store.now(), limit: 10 });
    const left = changed(store, "listRuns", async (of, filter) =>
      filter.rootRunId === run.runId && row !== null ? [row] : store.listRuns(of, filter),
    );
    const { problems } = await verifyStore(left, tenant);
    expect(problems).toMatchObject([{ code: "row_unexpected", runId: run.runId }]);
  });

  test("L2 an erased run reads as ended, without content, and verify accepts it", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [parent] });
    const { store, tenant } = errand;
    const hers = await errand.start(parent, "a secret", { user: "ada" });
    const his = await errand.start(parent, "kept", { user: "bob" });
    await Promise.all([hers.result(), his.result()]);
    expect(await store.operations.eraseUser(tenant, "ada")).toEqual({ erased: 2, stillLive: 0 });
    const status = await errand.status(hers.runId);
    expect(status).toMatchObject({ state: "ended", agent: "parent", end: { kind: "erased" }, goal: null });
    expect(status.why).toBe("It has ended; its content was erased.");
    await expect(hers.result()).rejects.toThrow(/RUN_ERASED/);
    await expect(hers.end()).rejects.toThrow(/RUN_ERASED/);
    expect(await errand.history(hers.runId)).toEqual([]);
    expect(await errand.effects(hers.runId)).toEqual([]);
    expect((await errand.tree(hers.runId)).children).toMatchObject([
      { agent: "child", end: { kind: "erased" } },
    ]);
    expect(JSON.stringify(await errand.log(hers.runId))).not.toContain("a secret");
    expect(await his.result()).toEqual({ said: "kept" });
    expect(await verifyStore(store, tenant)).toMatchObject({ problems: [], runs: 4, erased: 2 });
    const facts = [];
    for await (const event of errand.stream(hers.runId)) facts.push(event);
    expect(facts).toEqual([]);
  });

  test("L9 a thread goes on after what a person said on it was erased, and its digests hold", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [talker] });
    const { store, tenant } = errand;
    const first = await errand.start(talker, "one", { user: "bob" });
    const { threadId } = first;
    await first.result();
    const say = async (text: string, user: string) =>
      (await errand.start(talker, text, { user, threadId: threadId ?? "" })).result();
    await say("two", "ada");
    await say("three", "bob");
    await store.operations.eraseUser(tenant, "ada");
    expect((await verifyStore(store, tenant)).problems).toEqual([]);
    expect(await say("four", "bob")).toBe("heard 5");
    expect(await say("five", "cleo")).toBe("heard 7");
    await store.operations.eraseUser(tenant, "bob");
    expect(await say("six", "cleo")).toBe("heard 3");
    expect(await verifyStore(store, tenant)).toMatchObject({ problems: [], erased: 4 });
  });

  test("L2 verify refuses erasure of a part, of a live run, and of what rows still tell", async () => {
    await using world = await open();
    const asker = fn("asker", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
    const errand = await world.errand({ agents: [parent, asker] });
    const { store, tenant } = errand;
    const run = await errand.start(parent, "a secret", { user: "ada" });
    await run.result();
    const before = await errand.log(run.runId);
    await store.operations.eraseUser(tenant, "ada");
    const partly = changed(store, "readLog", async (...args) =>
      (await store.readLog(...args)).map((row) => before.find((one) => one.seq === row.seq) ?? row),
    );
    const codes = async (of: Store) => (await verifyStore(of, tenant)).problems.map((one) => one.code);
    expect(await codes(partly)).toContain("erased_wrongly");
    const telling = changed(store, "listRuns", async (...args) =>
      (await store.listRuns(...args)).map((row) => ({ ...row, summary: "{}" })),
    );
    expect(await codes(telling)).toEqual([]); // looked at again, it was only on its way
    const reviving = changed(store, "getRun", async (...args) => {
      const row = await store.getRun(...args);
      return row === null ? null : { ...row, state: "waiting" as const, summary: "{}" };
    });
    expect(await codes(changed(reviving, "listRuns", async () => []))).toContain("erased_wrongly");
  });
});
