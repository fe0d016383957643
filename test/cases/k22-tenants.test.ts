import { expect, test } from "vitest";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { onEachStore, until } from "../support/world.ts";

const asker = fn("asker", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
const parent = fn("parent", (ctx, input) => ctx.run(asker, input), { roster: [asker] });

async function twoTenants(open: Parameters<Parameters<typeof onEachStore>[1]>[0]) {
  const world = await open();
  const ours = await world.errand({ agents: [parent], tenant: "ours" });
  const theirs = await world.errand({ agents: [parent], tenant: "theirs" });
  const run = await ours.start(parent, "secret input", { key: "the same key" });
  await until(async () => (await run.status()).state === "awaiting");
  const [ticket] = await ours.tickets();
  return { world, ours, theirs, run, ticket: ticket! };
}

/** Everything of the door that names a run, a ticket, a thread or a publication. */
function methods(runId: string, ticketId: string): Record<string, (errand: Errand) => Promise<unknown>> {
  const streamed = async (events: AsyncGenerator<unknown>): Promise<unknown[]> => {
    const all: unknown[] = [];
    for await (const event of events) all.push(event);
    return all;
  };
  return {
    result: (errand) => errand.result(runId, { timeoutMs: 1 }),
    end: (errand) => errand.end(runId, { timeoutMs: 1 }),
    status: (errand) => errand.status(runId),
    tree: (errand) => errand.tree(runId),
    stream: (errand) => streamed(errand.stream(runId)),
    "resume by run": (errand) => errand.resume(runId, "mine"),
    "resume by ticket": (errand) => errand.resume(ticketId, "mine"),
    cancel: (errand) => errand.cancel(runId),
    pause: (errand) => errand.pause(runId),
    continue: (errand) => errand.continue(runId),
    log: (errand) => errand.log(runId),
    effects: (errand) => errand.effects(runId),
    history: (errand) => errand.history(runId),
    "handle.result": (errand) => errand.handle(runId).result({ timeoutMs: 1 }),
    "handle.status": (errand) => errand.handle(runId).status(),
    "handle.stream": (errand) => streamed(errand.handle(runId).stream()),
    "handle.cancel": (errand) => errand.handle(runId).cancel(),
  };
}

async function refusal(call: Promise<unknown>): Promise<{ code: string; message: string }> {
  const { code, message } = await call.then(
    () => ({ code: "none", message: "It was answered." }),
    (error: { code: string; message: string }) => error,
  );
  return { code, message: message.replaceAll(/(run|tkt)_[0-9a-z]+/g, "$1") };
}

onEachStore("K22 tenants", (open) => {
  test("K22.1 every method of the door answers a wrong tenant as if nothing were there", async () => {
    const { world, ours, theirs, run, ticket } = await twoTenants(open);
    await using _ = world;
    const absent = methods(`run_${"0".repeat(24)}`, `tkt_${"0".repeat(32)}`);
    const before = await ours.store.readLog(ours.tenant, { all: true }, 0, 1_000);
    const answers: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [name, call] of Object.entries(methods(run.runId, ticket.ticketId))) {
      const [wrong, gone] = await Promise.all([refusal(call(theirs)), refusal(absent[name]!(theirs))]);
      answers[name] = wrong;
      // Absent and not yours read alike, but for the id.
      expected[name] = { ...gone, code: "NOT_FOUND" };
    }
    expect(answers).toEqual(expected);
    expect(await ours.store.readLog(ours.tenant, { all: true }, 0, 1_000)).toEqual(before);
  });

  test("K22.1 every list of the door is empty for a wrong tenant", async () => {
    const { world, ours, theirs, run } = await twoTenants(open);
    await using _ = world;
    expect(await theirs.list()).toEqual([]);
    expect(await theirs.list({ rootsOnly: true, states: ["awaiting"] })).toEqual([]);
    expect(await theirs.tickets()).toEqual([]);
    expect(await theirs.tickets({ rootRunId: run.runId, all: true })).toEqual([]);
    expect((await theirs.feed("lifecycle", null)).entries).toEqual([]);
    expect((await theirs.workers()).map((worker) => worker.tenant)).toEqual(["theirs"]);
    expect(JSON.stringify(await theirs.feed("operational", null))).not.toContain(run.runId);
    expect(await ours.list()).toHaveLength(2);
  });

  test("K22.1 a publication of one tenant cannot be resolved or started by another", async () => {
    const { world, ours, theirs } = await twoTenants(open);
    await using _ = world;
    const own = fn("own", () => "ours alone");
    const { ref } = await ours.publish(own);
    for (const name of ["own", ref]) {
      expect((await ours.resolve(name)).ref).toBe(ref);
      await expect(theirs.resolve(name)).rejects.toMatchObject({ code: "UNKNOWN_AGENT" });
      await expect(theirs.start(name, null)).rejects.toMatchObject({ code: "UNKNOWN_AGENT" });
    }
  });

  test("K22.1 one key or one thread in two tenants is two runs and two histories", async () => {
    const { world, ours, theirs, run } = await twoTenants(open);
    await using _ = world;
    const other = await theirs.start(parent, "other input", { key: "the same key" });
    expect(other.runId).not.toBe(run.runId);
    const echo = fn("echo", (_ctx, input) => input);
    await theirs.publish(echo);
    const intruder = await theirs.start(parent, null, { threadId: run.threadId! });
    await until(async () => (await intruder.status()).state === "awaiting");
    expect(JSON.stringify(await theirs.log(intruder.runId))).not.toContain("secret input");
    const onThread = await ours.store.readLog(ours.tenant, { threadId: run.threadId! }, 0, 100);
    expect(new Set(onThread.map((row) => row.runId))).toEqual(new Set([run.runId]));
  });

  test("K22.2 another tenant's answer to a valid ticket is refused, and the ticket stays open", async () => {
    const { world, ours, theirs, run, ticket } = await twoTenants(open);
    await using _ = world;
    await expect(theirs.resume(ticket.ticketId, "theirs")).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await ours.tickets()).toMatchObject([{ ticketId: ticket.ticketId, status: "open" }]);
    await ours.resume(run.runId, "ours");
    expect(await run.result()).toBe("ours");
  });

  test("K22.2 a worker of one tenant never carries a run of another", async () => {
    await using world = await open();
    const host = await world.errand({ agents: [parent], tenant: "ours", worker: false });
    await world.errand({ agents: [parent], tenant: "theirs" });
    const run = await host.start(parent, null);
    await world.pass(10_000, 1_000);
    expect(await run.status()).toMatchObject({
      state: "ready",
      why: expect.stringContaining("no worker is alive"),
    });
  });
});
