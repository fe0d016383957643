import fc from "fast-check";
import { expect, test } from "vitest";
import { fn } from "../support/agents.ts";
import { factsOfType, writes } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { LEASE_MS, type World, onStores, turns, until } from "../support/world.ts";

const DAY_MS = 86_400_000;
const TEN = Array.from({ length: 10 }, (_, at) => at);

/** A coordinator of ten children that can only end, each held back by its gate. */
function coordinator(gates: readonly Gate[]) {
  const child = fn("child", async (_ctx, at) => {
    await gates[at as number]?.wait();
    return at;
  });
  return fn("coordinator", (ctx) => Promise.all(gates.map((_, at) => ctx.run(child, at))), {
    roster: [child],
    limits: { maxParallelChildren: 10 },
  });
}

async function allArrived(gates: readonly Gate[]): Promise<void> {
  await until(() => gates.every((gate) => gate.arrivals === 1));
}

onStores("K3 lost results", { anyWorker: true }, (open) => {
  test("K3.1 a parent with nobody attached gets its result and completes", async () => {
    await using world = await open();
    const child = fn("child", () => "done");
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const starter = await world.errand({ agents: [parent], worker: false });
    const { runId } = await starter.start(parent, null);
    await starter.close();
    const worker = await world.errand({ agents: [parent] });
    await until(async () => (await worker.status(runId)).state === "ended");
    expect(await worker.result(runId)).toBe("done");
    const inbox = await worker.store.listInbox(worker.tenant, runId as never);
    expect(inbox.map((row) => row.status)).toEqual(["consumed"]);
  });

  test("K3.1 a wait that begins at the instant of the end is told at once", async () => {
    await using world = await open();
    const gate = new Gate();
    const look = new Gate();
    const agent = fn("agent", async () => {
      await gate.wait();
      return "done";
    });
    let waiting = false;
    const errand = await world.errand({ agents: [agent] });
    const watcher = await world.errand({
      agents: [agent],
      worker: false,
      hooks: { answered: async (name) => void (name === "getRun" && waiting && (await look.wait())) },
    });
    const run = await errand.start(agent, null);
    await until(() => gate.arrivals === 1);
    waiting = true;
    const result = watcher.result(run.runId);
    await until(() => look.arrivals === 1);
    gate.open();
    await until(async () => (await run.status()).state === "ended");
    await world.settled();
    waiting = false;
    look.open();
    // No time passes, so no poll helps: it was heard, or the wait never ends.
    expect(await result).toBe("done");
  });

  test("K3.3 a child's ending commit that fails three times is repeated under its id: one result", async () => {
    await using world = await open();
    const ids: string[] = [];
    const child = fn("child", () => "done");
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const errand = await world.errand({
      agents: [parent],
      hooks: {
        commit: (commit) => {
          if (commit.deliver.length === 0) return;
          ids.push(commit.operationId);
          if (ids.length <= 3) throw brokenConnection();
        },
      },
    });
    const run = await errand.start(parent, null);
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("done");
    expect(ids).toHaveLength(4);
    expect(new Set(ids).size).toBe(1);
    expect(await factsOfType(errand, run.runId, "child_result_consumed")).toHaveLength(1);
  });

  test("K3.4 ten children of one coordinator finish at once: ten envelopes, all consumed, no time passes", async () => {
    await using world = await open();
    const gates = TEN.map(() => new Gate());
    const agent = coordinator(gates);
    const errand = await world.errand({ agents: [agent] });
    const run = await errand.start(agent, null);
    await allArrived(gates);
    for (const gate of gates) gate.open();
    expect(await run.result()).toEqual(TEN);
    const inbox = await errand.store.listInbox(errand.tenant, run.runId);
    expect(inbox.map((row) => row.status)).toEqual(TEN.map(() => "consumed"));
    expect(await factsOfType(errand, run.runId, "child_result_consumed")).toHaveLength(10);
  });

  test("K3.4 ten children on another worker finish at once, with every wake dropped", async () => {
    await using world = await open();
    const gates = TEN.map(() => new Gate());
    const agent = coordinator(gates);
    const deaf = { wake: () => false };
    const errand = await world.errand({ agents: [agent], hooks: deaf, worker: { concurrency: 1 } });
    await world.errand({ agents: [agent], hooks: deaf });
    const run = await errand.start(agent, null);
    await world.passUntil(() => gates.every((gate) => gate.arrivals === 1));
    for (const gate of gates) gate.open();
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toEqual(TEN);
  });

  test("K3.4 ten deliveries into a parent that is mid-step, in every order: no lost wake, no endless repeat", async () => {
    const order = fc.shuffledSubarray(TEN, { minLength: 10 });
    const scenario = async (ends: readonly number[], heldAt: number): Promise<void> => {
      await using world = await open();
      const gates = TEN.map(() => new Gate());
      const agent = coordinator(gates);
      const commits = new Map<string, number>();
      const hold = new Gate();
      const ended = new Set<string>();
      const errand = await world.errand({
        agents: [agent],
        hooks: {
          // One of the parent's consuming commits is under way while all the others are delivered.
          commit: async (commit) => {
            if (writes(commit, "child_result_consumed") && hold.arrivals === 0 && ended.size >= heldAt)
              await hold.wait();
          },
          committed: ({ lane, deliver }) => {
            if (lane !== null) commits.set(lane.runId, (commits.get(lane.runId) ?? 0) + 1);
            if (deliver.length > 0) ended.add(String(lane?.runId));
          },
        },
      });
      const run = await errand.start(agent, null);
      await allArrived(gates);
      for (const at of ends) {
        gates[at]?.open();
        await turns(at % 3);
      }
      await until(() => ended.size === 10);
      hold.open();
      expect(await run.result()).toEqual(TEN);
      expect(commits.get(run.runId)).toBeLessThanOrEqual(2 + 2 * TEN.length);
    };
    await fc.assert(fc.asyncProperty(order, fc.integer({ min: 1, max: 10 }), scenario), { numRuns: 20 });
  });

  test("K3.5 a result that nobody reads for a month does not expire", async () => {
    await using world = await open();
    const gate = new Gate();
    const child = fn("child", async () => {
      await gate.wait();
      return "done";
    });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const first = await world.errand({ agents: [parent], worker: { concurrency: 1 } });
    const run = await first.start(parent, null);
    await until(() => gate.arrivals === 1);
    first.worker?.kill();
    const below = await world.errand({ agents: [child], worker: {} });
    gate.open();
    await world.pass(LEASE_MS * 2);
    const unread = async () =>
      (await below.store.listInbox(below.tenant, run.runId)).map((row) => row.status);
    await until(async () => expect(await unread()).toEqual(["unread"]));
    below.worker?.kill();
    world.clock.advance(30 * DAY_MS);
    expect(await unread()).toEqual(["unread"]);
    const late = await world.errand({ agents: [parent] });
    await world.passUntil(async () => (await late.status(run.runId)).state === "ended");
    expect(await late.result(run.runId)).toBe("done");
  });

  test("K3.6 a wait of two seconds on a run that never ends returns at two seconds, and the run goes on", async () => {
    await using world = await open();
    const gate = new Gate();
    const child = fn("child", async () => {
      await gate.wait();
      return "done";
    });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await until(() => gate.arrivals === 1);
    const waited = run.result({ timeoutMs: 2_000 }).catch((error: unknown) => error);
    let over = false;
    void waited.then(() => (over = true));
    await world.pass(1_900, 100);
    expect(over).toBe(false);
    await world.pass(100, 100);
    expect(await waited).toMatchObject({ code: "WAIT_TIMEOUT", details: { state: "waiting" } });
    gate.open();
    expect(await run.result()).toBe("done");
  });

  test("K3.7 a worker that dies between recording a cancel and passing it on: the next one finishes the stop", async () => {
    await using world = await open();
    const gate = new Gate();
    const child = fn("child", async () => {
      await gate.wait();
      return "late";
    });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const first = await world.errand({
      agents: [parent],
      hooks: {
        commit: (commit) => {
          if (commit.intentsDelivered.length === 0) return;
          first.worker?.kill();
          throw brokenConnection();
        },
      },
    });
    const run = await first.start(parent, null);
    await until(() => gate.arrivals === 1);
    await run.cancel({ requestId: "stop" });
    await until(() => first.worker?.active === 0);
    const second = await world.errand({ agents: [parent] });
    // To ask again is to ask the same; it returns, and says that the parent has ended.
    expect(await second.cancel(run.runId, { requestId: "stop" })).toMatchObject({ recorded: false });
    expect((await second.end(run.runId)).kind).toBe("canceled");
    await world.passUntil(async () => (await second.tree(run.runId)).children[0]?.state === "ended");
    expect((await second.tree(run.runId)).children[0]?.end?.kind).toBe("canceled");
    gate.open();
  });

  /** The store cannot be reached from one worker; `restore` brings it back. */
  function cuttable(): { cut: boolean; readonly hooks: Parameters<World["errand"]>[0]["hooks"] } {
    const state = {
      cut: false,
      hooks: {
        commit: () => {
          if (state.cut) throw brokenConnection();
        },
        call: () => {
          if (state.cut) throw brokenConnection();
        },
      },
    };
    return state;
  }

  test("K3.8 a short cut during the ending commit: it is repeated under its id and stands", async () => {
    await using world = await open();
    const net = cuttable();
    const gate = new Gate();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn(
      "agent",
      async (ctx) => {
        const sent = await ctx.tool(mail, { id: "a" });
        await gate.wait();
        return sent;
      },
      { tools: [mail] },
    );
    const errand = await world.errand({ agents: [agent], hooks: net.hooks });
    const run = await errand.start(agent, null);
    await until(() => gate.arrivals === 1);
    net.cut = true;
    gate.open();
    await world.pass(LEASE_MS / 2);
    net.cut = false;
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe("mail a");
    expect(await factsOfType(errand, run.runId, "attempt_started")).toHaveLength(1);
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("K3.8 a long cut: the claim is lost, the ending commit is refused, and the new holder ends the run once", async () => {
    await using world = await open();
    const net = cuttable();
    const gate = new Gate();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const agent = fn(
      "agent",
      async (ctx) => {
        const sent = await ctx.tool(mail, { id: "a" });
        await gate.wait();
        return sent;
      },
      { tools: [mail] },
    );
    const first = await world.errand({ agents: [agent], hooks: net.hooks, worker: { concurrency: 1 } });
    const run = await first.start(agent, null);
    await until(() => gate.arrivals === 1);
    const second = await world.errand({ agents: [agent], worker: {} });
    net.cut = true;
    gate.open();
    await world.pass(LEASE_MS * 2);
    await until(async () => (await second.status(run.runId)).state === "ended");
    net.cut = false;
    await world.pass(LEASE_MS * 2);
    expect(await second.result(run.runId)).toBe("mail a");
    expect(await factsOfType(second, run.runId, "run_ended")).toHaveLength(1);
    expect(outside.done).toEqual(["mail:a"]);
    // Its slot is free again: it carries the next run.
    expect(first.worker?.active).toBe(0);
    expect(world.told.some((event) => event.type === "worker_lost_lease")).toBe(true);
    second.worker?.kill();
    const next = await first.start(agent, null);
    await world.passUntil(async () => (await next.status()).state === "ended");
  });
});
