import { expect, test } from "vitest";
import { verifyStore } from "../../src/runtime/verify/verify-store.ts";
import type { Commit, Store } from "../../src/runtime/ports/store.ts";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { factsOf, laneFacts } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { HEARTBEAT_MS, LEASE_MS, onEachStore, turns, until } from "../support/world.ts";

/** A tree with everything in it: tools, an approval, a question, parallel children, a failure and a retry. */
function wholeTree(outside: Outside) {
  const mail = outside.tool("mail");
  const guarded = outside.tool("guarded", { approval: true });
  const leaf = fn("leaf", (ctx, id) => ctx.tool(mail, { id: id as string }), { tools: [mail] });
  let failures = 0;
  const flaky = fn("flaky", async (ctx) => {
    const now = await ctx.now();
    if (failures++ === 0) throw new Error("once more");
    return now > 0;
  });
  const asker = fn(
    "asker",
    async (ctx) => [await ctx.ask({ prompt: "Which?" }), await ctx.tool(guarded, { id: "g" })],
    {
      mayAsk: true,
      tools: [guarded],
    },
  );
  return fn(
    "top",
    async (ctx) => [
      await Promise.all([ctx.run(leaf, "a"), ctx.run(leaf, "b")]),
      await ctx.run(flaky, null),
      await ctx.run(asker, null),
    ],
    { roster: [leaf, flaky, asker] },
  );
}

async function playedThrough(
  errand: Errand,
  pass: (what: () => Promise<boolean>) => Promise<void>,
  runId: string,
) {
  await pass(async () => (await errand.tickets()).length === 1);
  await errand.resume(runId, "this");
  await pass(async () => (await errand.tickets())[0]?.kind === "approval");
  await errand.resume(runId, { approved: true });
  await pass(async () => (await errand.status(runId)).state === "ended");
  expect(await errand.result(runId)).toEqual([["mail a", "mail b"], true, ["this", "guarded g"]]);
}

async function wholeLog(store: Store, errand: Errand) {
  return store.readLog(errand.tenant, { all: true }, 0, 10_000);
}

onEachStore("The write path", (open) => {
  test("L1 every fact in the log came through a commit, and no other call wrote one", async () => {
    await using world = await open();
    const outside = new Outside();
    const top = wholeTree(outside);
    const committed: RunFact[] = [];
    const others = new Set<string>();
    const errand = await world.errand({
      agents: [top],
      hooks: {
        committed: (commit, outcome) => {
          if (outcome.kind !== "committed") return;
          const bodies = [...commit.create, ...commit.signals].map((one) => one.body);
          committed.push(...laneFacts(commit), ...bodies.flatMap((body) => JSON.parse(body) as RunFact[]));
        },
        call: (name) => void others.add(name),
      },
    });
    const run = await errand.start(top, null);
    await playedThrough(errand, (what) => world.passUntil(what), run.runId);
    const log = await wholeLog(errand.store, errand);
    const logged = log.flatMap((row) => JSON.parse(row.body) as RunFact[]);
    const text = (facts: readonly RunFact[]) =>
      facts.map((fact) => JSON.stringify(fact)).toSorted((a, b) => (a < b ? -1 : 1));
    expect(text(logged)).toEqual(text(committed));
    const writes = [...others].filter(
      (name) => !/^(get|list|read|count|next|head|orphaned|pending)/.test(name),
    );
    expect(writes.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
      ["claim", "heartbeat", "putPublication", "reapWorkers", "registerWorker"].filter((name) =>
        writes.includes(name),
      ),
    );
  });

  test("L2 every row can be rebuilt from the log, at every moment of a tree's life", async () => {
    await using world = await open();
    const top = wholeTree(new Outside());
    const look = await world.connect();
    let verified = 0;
    const errand = await world.errand({
      agents: [top],
      hooks: {
        committed: async ({ tenant }) => {
          const { problems } = await verifyStore(look, tenant);
          expect(problems).toEqual([]);
          verified += 1;
        },
      },
    });
    const run = await errand.start(top, null);
    await playedThrough(errand, (what) => world.passUntil(what), run.runId);
    expect(verified).toBeGreaterThan(15);
  });

  test("L2 claims and heartbeats are no facts: a worker that only lives writes nothing into the log", async () => {
    await using world = await open();
    const agent = fn("agent", async (ctx) => ctx.sleep(60_000).then(() => "done"));
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await until(async () => (await run.status()).state === "waiting");
    const before = await wholeLog(errand.store, errand);
    await world.pass(10 * HEARTBEAT_MS);
    expect(await wholeLog(errand.store, errand)).toEqual(before);
  });

  test("L3 what comes after the end is kept for audit and changes nothing", async () => {
    await using world = await open();
    const asker = fn("asker", (ctx) => ctx.ask({ prompt: "Which?" }), { mayAsk: true });
    const errand = await world.errand({ agents: [asker] });
    const run = await errand.start(asker, null);
    await until(async () => (await errand.tickets()).length === 1);
    const [ticket] = await errand.tickets();
    await errand.resume(run.runId, "this");
    const end = await errand.end(run.runId);
    const [facts, status, history] = [
      await factsOf(errand, run.runId),
      await run.status(),
      await errand.history(run.runId),
    ];
    expect(await run.cancel({ reason: "too late" })).toEqual({ recorded: true, ended: true });
    expect(await errand.pause(run.runId)).toEqual({ recorded: true, ended: true });
    expect(await errand.continue(run.runId)).toEqual({ recorded: true, ended: true });
    await expect(errand.resume(ticket!.ticketId, "other")).rejects.toMatchObject({ code: "TICKET_DECIDED" });
    await world.pass(2 * HEARTBEAT_MS);
    expect(await errand.end(run.runId)).toEqual(end);
    expect(await run.status()).toEqual(status);
    expect(await errand.history(run.runId)).toEqual(history);
    const after = await factsOf(errand, run.runId);
    expect(after.slice(0, facts.length)).toEqual(facts);
    expect(after.slice(facts.length)).toMatchObject([
      { type: "cancel_requested", reason: "too late", source: "signal" },
      { type: "pause_requested", source: "signal" },
      { type: "continue_requested", source: "signal" },
    ]);
  });

  test("L4 a worker that lost its lease commits nothing more, and tells its agent to stop", async () => {
    await using world = await open();
    const gate = new Gate();
    const stopped: unknown[] = [];
    const agent = fn("agent", async (ctx) => {
      const now = await ctx.now();
      ctx.signal.addEventListener("abort", () => stopped.push(ctx.signal.reason));
      await gate.wait();
      return now > 0;
    });
    let silent = false;
    const first = await world.errand({
      agents: [agent],
      hooks: {
        call: (name) => {
          if (silent && name === "heartbeat") throw brokenConnection();
        },
      },
    });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    silent = true;
    const second = await world.errand({ agents: [agent] });
    await world.pass(LEASE_MS + 2 * HEARTBEAT_MS);
    await until(() => gate.arrivals === 2);
    const before = await second.log(run.runId);
    silent = false;
    await world.pass(2 * HEARTBEAT_MS);
    await until(() => stopped.length === 1);
    expect(world.told.map((event) => event.type)).toContain("worker_lost_lease");
    expect(await second.log(run.runId)).toEqual(before);
    gate.open();
    expect(await second.result(run.runId)).toBe(true);
    const versions = (await second.log(run.runId))
      .filter((row) => row.source === "lane")
      .map((row) => row.version);
    expect(versions).toEqual(versions.map((_, at) => at + 1));
  });

  test("L4 only the lane's holder moves the version: a cancel, an answer and a child's end do not", async () => {
    await using world = await open();
    const gate = new Gate();
    const child = fn("child", () => "done");
    const parent = fn("parent", async (ctx) => {
      const now = await ctx.now();
      await gate.wait();
      return now > 0;
    });
    const errand = await world.errand({ agents: [parent, child] });
    const run = await errand.start(parent, null);
    await until(() => gate.arrivals === 1);
    await world.settled();
    const before = await errand.store.getRun(errand.tenant, run.runId);
    for (const control of ["pause", "continue", "pause", "continue"] as const)
      await errand[control](run.runId);
    const after = await errand.store.getRun(errand.tenant, run.runId);
    expect([after?.version, after?.epoch]).toEqual([before?.version, before?.epoch]);
    expect([after?.signalSeq, after?.controlSeq]).toEqual([4, 4]);
    gate.open();
    expect(await run.result()).toBe(true);
  });

  test("L5 every commit whose reply is lost is answered with its first receipt, and stands once", async () => {
    await using world = await open();
    const outside = new Outside();
    const top = wholeTree(outside);
    const first = new Map<string, unknown>();
    const sent: Commit[] = [];
    const errand = await world.errand({
      agents: [top],
      hooks: {
        committed: (commit, outcome) => {
          sent.push(commit);
          if (outcome.kind === "committed") {
            first.set(commit.operationId, outcome.receipt);
            throw brokenConnection();
          }
          expect(outcome).toEqual({ kind: "duplicate", receipt: first.get(commit.operationId) });
        },
      },
    });
    const starting = errand.start(top, null);
    await world.pass(1_000, 10);
    const run = await starting;
    const pass = async (what: () => Promise<boolean>): Promise<void> => {
      for (let step = 0; step < 2_000 && !(await what()); step++) await world.pass(20, 10);
    };
    const resume = (answer: Parameters<Errand["resume"]>[1]) => {
      const resumed = errand.resume(run.runId, answer);
      return world.pass(200, 10).then(() => resumed);
    };
    await pass(async () => (await errand.tickets()).length === 1);
    await resume("this");
    await pass(async () => (await errand.tickets())[0]?.kind === "approval");
    await resume({ approved: true });
    await pass(async () => (await run.status()).state === "ended");
    expect(await run.result()).toEqual([["mail a", "mail b"], true, ["this", "guarded g"]]);
    expect(outside.done.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(["guarded:g", "mail:a", "mail:b"]);
    expect(sent.length).toBe(2 * first.size);
  });

  test("L6 while a model, a tool and a person are waited for, no call of the store is under way", async () => {
    await using world = await open();
    const gate = new Gate();
    const slow = new Outside().tool("slow", { after: () => gate.wait() });
    const agent = fn("agent", (ctx) => ctx.tool(slow, { id: "a" }), { tools: [slow] });
    let underWay = 0;
    const enter = (): void => void (underWay += 1);
    const leave = (): void => void (underWay -= 1);
    const errand = await world.errand({
      agents: [agent],
      hooks: { commit: enter, committed: leave, call: enter, answered: leave },
    });
    const run = await errand.start(agent, null);
    await until(() => gate.arrivals === 1);
    await world.settled(20);
    expect(underWay).toBe(0);
    gate.open();
    expect(await run.result()).toBe("slow a");
  });

  test("L7 a reader that follows the feed while many runs write misses nothing and sees nothing twice", async () => {
    await using world = await open();
    const leaf = fn("leaf", (ctx) => ctx.now());
    const parent = fn("parent", (ctx) => Promise.all([ctx.run(leaf, 1), ctx.run(leaf, 2)]), {
      roster: [leaf],
    });
    const errand = await world.errand({ agents: [parent] });
    await world.errand({ agents: [parent] });
    const seen: number[] = [];
    let cursor: string | null = null;
    const follow = async (): Promise<void> => {
      const page = await errand.feed("lifecycle", cursor, 7);
      cursor = page.cursor;
      seen.push(...page.entries.map((entry) => entry.seq));
      if (page.entries.length > 0) await follow();
    };
    const runs = await Promise.all(Array.from({ length: 20 }, () => errand.start(parent, null)));
    const ends = runs.map((run) => errand.end(run.runId));
    let over = false;
    void Promise.all(ends).then(() => (over = true));
    while (!over) {
      await follow();
      await turns(1);
    }
    await follow();
    const all = await errand.feed("lifecycle", null, 10_000);
    expect(seen).toEqual(all.entries.map((entry) => entry.seq));
    const ended = all.entries.filter(
      ({ entry }) => entry.feed === "lifecycle" && entry.row.body.includes('"run_ended"'),
    );
    expect(ended).toHaveLength(60);
  });
});
