import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { Store } from "../../src/runtime/ports/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { fn } from "../support/agents.ts";
import { onEachStore, until } from "../support/world.ts";

const SECRET = "sk-live-0123456789abcdef";

/** Everything that a store can be asked for, as text. */
async function everything(store: Store, tenant: Parameters<Store["listRuns"]>[0]): Promise<string> {
  const runs = await store.listRuns(tenant, { limit: 1_000 });
  return JSON.stringify([
    runs,
    await store.readLog(tenant, { all: true }, 0, 10_000),
    await store.listPublications(tenant),
    await store.listTickets(tenant, { limit: 1_000 }),
    await store.listDelegations(tenant, { limit: 1_000 }),
    await Promise.all(runs.map((run) => store.listInbox(tenant, run.runId))),
    await store.listWorkers(tenant),
    await store.readFeed(tenant, "lifecycle", null, 10_000),
    await store.readFeed(tenant, "operational", null, 10_000),
  ]);
}

onEachStore("Authority", (open) => {
  test("L31 every call of the store that names a tenant answers another one as if nothing were there", async () => {
    await using world = await open();
    const child = fn("child", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const ours = await world.errand({ agents: [parent], tenant: "ours" });
    const theirs = await world.errand({ agents: [parent], tenant: "theirs", worker: false });
    const run = await ours.start(parent, null);
    await until(async () => (await run.status()).state === "awaiting");
    const { store, tenant } = theirs;
    const [ticket] = await ours.tickets();
    const [relation] = await ours.store.listDelegations(ours.tenant, { limit: 1 });
    expect(await store.getRun(tenant, run.runId)).toBeNull();
    expect(await store.getTicket(tenant, ticket!.ticketId)).toBeNull();
    expect(await store.getDelegation(tenant, relation!.delegationId)).toBeNull();
    expect(await store.listInbox(tenant, run.runId)).toEqual([]);
    expect(await store.readLog(tenant, { rootRunId: run.runId }, 0, 10)).toEqual([]);
    expect(await store.readPending(tenant, run.runId, 0)).toEqual(
      await store.readPending(tenant, "run_00000000" as never, 0),
    );
    const text = await everything(store, tenant);
    for (const id of [run.runId, ticket!.ticketId, relation!.delegationId]) expect(text).not.toContain(id);
  });

  test("L32 a secret that an agent's model or tool holds is in no publication, fact, row, feed or telemetry", async () => {
    await using world = await open();
    const keyed = { apiKey: SECRET, headers: { authorization: `Bearer ${SECRET}` } };
    const provider = scriptedModel(({ step }) =>
      step === 0
        ? { calls: [{ tool: "fetch", input: { id: "a" } }] }
        : `done with ${String(keyed.apiKey.length)}`,
    );
    const model = Object.assign(provider, { config: keyed, secretKey: SECRET });
    const fetch = Object.assign(
      defineTool({
        name: "fetch",
        description: "Fetches.",
        inputSchema: { type: "object" },
        replay: "safe",
        effect: "read_only",
        run: () => `fetched with ${keyed.headers.authorization.length} characters`,
      }),
      { credentials: keyed },
    );
    const child = modelAgent({
      name: "child",
      instructions: "Fetch.",
      model,
      tools: [fetch],
      providerOptions: { scripted: { apiKey: SECRET, nested: { accessToken: SECRET, password: SECRET } } },
    });
    const parent = fn("parent", async (ctx) => ctx.run(child, `call ${SECRET.length}`), { roster: [child] });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await run.result();
    expect(await everything(errand.store, errand.tenant)).not.toContain(SECRET);
    expect(JSON.stringify(world.told)).not.toContain(SECRET);
    const published = await errand.store.listPublications(errand.tenant);
    expect(published.map((one) => one.name)).toEqual(expect.arrayContaining(["child", "parent"]));
    expect(JSON.stringify(published)).toContain("[redacted]");
  });

  test("L32 names are never identities: agents and workers of one name are told apart", async () => {
    await using world = await open();
    const one = fn("same", () => "one", { version: "1" });
    const two = fn("same", () => "two", { version: "2" });
    const worker = { name: "same-name" };
    const first = await world.errand({ agents: [one], worker });
    const second = await world.errand({ agents: [two], worker });
    const runs = [await first.start(one, null), await second.start(two, null)];
    expect([await first.result(runs[0]!.runId), await second.result(runs[1]!.runId)]).toEqual(["one", "two"]);
    const workers = await first.workers();
    expect(workers.map((row) => row.name)).toEqual(["same-name", "same-name"]);
    expect(new Set(workers.map((row) => row.incarnation)).size).toBe(2);
    const refs = (await first.store.listPublications(first.tenant)).map((row) => row.ref);
    expect(new Set(refs).size).toBe(2);
  });

  test("L32 what a publication is called is what is in it: the same agent in new objects is the same release", async () => {
    await using world = await open();
    const define = () => fn("agent", () => "done", { roster: [fn("below", () => "done")] });
    const first = await world.errand({ agents: [define()] });
    const second = await world.errand({ agents: [define()] });
    expect((await second.resolve("agent")).ref).toBe((await first.resolve("agent")).ref);
    expect(await first.store.listPublications(first.tenant)).toHaveLength(2);
    const changed = fn("agent", () => "done", { roster: [fn("below", () => "done", { version: "2" })] });
    expect((await first.publish(changed)).ref).not.toBe((await second.resolve("below")).ref);
    expect(await first.store.listPublications(first.tenant)).toHaveLength(4);
  });
});
