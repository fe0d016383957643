import { expect, test } from "vitest";
import { fn, secretAsker } from "../support/agents.ts";
import { factTypes, factsOf, writes } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { LEASE_MS, onStores, until } from "../support/world.ts";

onStores("A parent's end", { anyWorker: true }, (open) => {
  test("L17 a parent's end seals its calls, keeps and charges what is unread, and cancels what still runs", async () => {
    await using world = await open();
    const outside = new Outside();
    const gate = new Gate();
    const mail = outside.tool("mail");
    const quick = fn("quick", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    const slow = fn("slow", async () => {
      await gate.wait();
      return "late";
    });
    const parent = fn("parent", (ctx) => Promise.all([ctx.run(quick, null), ctx.run(slow, null)]), {
      roster: [quick, slow],
    });
    // The parent's worker dies after delegating, so nobody reads what the children deliver.
    const above = await world.errand({
      agents: [parent],
      worker: { concurrency: 1 },
      hooks: { committed: (commit) => void (commit.create.length === 2 && above.worker?.kill()) },
    });
    const below = await world.errand({ agents: [quick, slow] });
    const run = await above.start(parent, null);
    await world.pass(LEASE_MS * 2);
    await until(async () =>
      expect((await below.store.listInbox(below.tenant, run.runId)).map((row) => row.status)).toEqual([
        "unread",
      ]),
    );
    await until(() => expect(gate.arrivals).toBe(1));
    await below.cancel(run.runId, { reason: "enough" });
    const next = await world.errand({ agents: [parent] });
    await world.passUntil(async () => (await next.status(run.runId)).state === "ended");
    const [quickRun, slowRun] = (await next.tree(run.runId)).children;

    const facts = await factsOf(next, run.runId);
    const end = facts.find((fact) => fact.type === "run_ended");
    const last = facts.filter((fact) => fact.seq === end?.seq);
    expect(last.map((fact) => fact.type)).toEqual([
      "control_observed",
      "call_indeterminate",
      "call_indeterminate",
      "batch_finalized",
      "child_result_discarded",
      "delegation_closed",
      "delegation_cancel_requested",
      "run_ended",
    ]);
    expect(last.find((fact) => fact.type === "child_result_discarded")).toMatchObject({
      usage: { toolCalls: 1 },
    });
    const summary = JSON.parse((await next.store.getRun(next.tenant, run.runId))!.summary) as {
      childUsage: { toolCalls: number };
    };
    expect(summary.childUsage.toolCalls).toBe(1);

    // The intent reaches the child, whose own fact confirms it; its late result reopens nothing.
    await world.passUntil(async () => (await next.status(slowRun!.runId)).state === "ended");
    expect((await next.status(slowRun!.runId)).end).toMatchObject({ kind: "canceled" });
    const inbox = await next.store.listInbox(next.tenant, run.runId);
    expect(inbox.map((row) => row.status).toSorted()).toEqual(["discarded", "discarded"]);
    const relations = await next.store.listDelegations(next.tenant, { parentRunId: run.runId, limit: 9 });
    expect(relations.map((row) => row.status)).toEqual(["closed", "closed"]);
    expect((await next.status(quickRun!.runId)).end).toMatchObject({ kind: "completed" });
    gate.open();
    await world.settled();
    expect((await factsOf(next, run.runId)).length).toBe(facts.length);
  });

  test("L17 an intent that cannot be delivered is retried until it stands", async () => {
    await using world = await open();
    let refused = 0;
    const gate = new Gate();
    const slow = fn("slow", async () => {
      await gate.wait();
      return "late";
    });
    const parent = fn("parent", (ctx) => ctx.run(slow, null), { roster: [slow] });
    const errand = await world.errand({
      agents: [parent],
      hooks: {
        commit: (commit) => {
          if (commit.intentsDelivered.length === 0 || refused >= 3) return;
          refused += 1;
          throw brokenConnection();
        },
      },
    });
    const run = await errand.start(parent, null);
    await until(() => expect(gate.arrivals).toBe(1));
    await run.cancel();
    await until(async () => expect((await run.status()).state).toBe("ended"));
    await world.passUntil(async () => (await run.tree()).children[0]?.state === "ended");
    expect(refused).toBe(3);
    expect((await run.tree()).children[0]?.end?.kind).toBe("canceled");
  });

  test("L17 a child that has not started when its parent ends never starts", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const child = fn("child", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    const above = await world.errand({
      agents: [parent],
      hooks: {
        // Nobody may start the child in the delegating commit.
        commit: (commit) => ({ ...commit, create: commit.create.map((run) => ({ ...run, claim: false })) }),
        call: (name, args) => {
          if (name === "claim")
            (args[1] as { carries: Set<string> }).carries = new Set([...carried].slice(0, 1));
        },
      },
    });
    const carried = [...above.worker!.carries].filter((ref) => ref.startsWith("parent"));
    const run = await above.start(parent, null);
    await until(async () => expect((await run.status()).state).toBe("waiting"));
    await run.cancel();
    await until(async () => expect((await run.status()).state).toBe("ended"));
    const other = await world.errand({ agents: [child] });
    await world.passUntil(async () => (await other.tree(run.runId)).children[0]?.state === "ended");
    const [childNode] = (await other.tree(run.runId)).children;
    expect(await factTypes(other, childNode!.runId)).toEqual([
      "run_created",
      "cancel_requested",
      "control_observed",
      "run_ended",
    ]);
    expect(outside.done).toEqual([]);
  });

  test.each(["parent", "child", "neither"] as const)(
    "L17 parent and child end at the same instant, %s first: both end, nothing is stuck",
    async (first) => {
      await using world = await open();
      const gate = new Gate();
      const hold = { parent: new Gate(), child: new Gate() };
      const slow = fn("slow", async () => {
        await gate.wait();
        return "done";
      });
      const parent = fn("parent", (ctx) => ctx.run(slow, null), { roster: [slow] });
      const errand = await world.errand({
        agents: [parent],
        hooks: {
          commit: async (commit) => {
            if (writes(commit, "run_ended"))
              await hold[commit.deliver.length > 0 ? "child" : "parent"].wait();
          },
        },
      });
      const run = await errand.start(parent, null);
      await until(() => expect(gate.arrivals).toBe(1));
      gate.open();
      await run.cancel();
      await until(() => expect([hold.child.arrivals, hold.parent.arrivals]).toEqual([1, 1]));
      const [child] = (await run.tree()).children;
      const relation = () => errand.store.getDelegation(errand.tenant, child!.delegationId!);
      if (first === "parent") {
        hold.parent.open();
        await until(async () => (await relation())?.intentDelivered === true);
      } else if (first === "child") {
        hold.child.open();
        await until(async () => (await errand.status(child!.runId)).state === "ended");
      }
      hold.parent.open();
      hold.child.open();
      expect((await errand.end(run.runId)).kind).toBe("canceled");
      const end = await errand.end(child!.runId);
      // A completion that is committed first beats a cancel; after one, nothing is completed any more.
      const expected = { parent: /canceled/, child: /completed/, neither: /canceled|completed/ }[first];
      expect(end.kind).toMatch(expected);
      const inbox = await errand.store.listInbox(errand.tenant, run.runId);
      expect(inbox.map((row) => row.status)).toEqual(["discarded"]);
      expect((await relation())?.status).toBe("closed");
    },
  );

  test("L17 a run that completes while a canceled child of it still waits: its late result is discarded", async () => {
    await using world = await open();
    const hold = new Gate();
    const echo = fn("echo", (_ctx, input) => input);
    const liar = secretAsker("liar");
    const parent = fn(
      "tolerant",
      async (ctx) =>
        (await Promise.allSettled([ctx.run(echo, 0), ctx.run(liar, null)])).map((one) => one.status),
      { roster: [echo, liar], onUnexpectedAwait: "continue" },
    );
    const errand = await world.errand({
      agents: [parent],
      hooks: {
        commit: async (commit) => {
          if (commit.intentsDelivered.length > 0) await hold.wait();
        },
      },
    });
    const run = await errand.start(parent, null);
    expect(await run.result()).toEqual(["fulfilled", "rejected"]);
    const late = (await run.tree()).children[1]!;
    expect((await errand.status(late.runId)).state).toBe("awaiting");
    hold.open();
    expect((await errand.end(late.runId)).kind).toBe("canceled");
    const relations = await errand.store.listDelegations(errand.tenant, { parentRunId: run.runId, limit: 9 });
    expect(relations.map((one) => one.status)).toEqual(["closed", "closed"]);
    expect((await errand.end(run.runId)).kind).toBe("completed");
  });

  test("L17 a cancel of the root goes down three levels that two workers carry", async () => {
    await using world = await open();
    const gate = new Gate();
    const g = fn("g", async () => {
      await gate.wait();
      return 1;
    });
    const c = fn("c", (ctx) => Promise.all([ctx.run(g, 1), ctx.run(g, 2)]), { roster: [g] });
    const p = fn("p", (ctx) => Promise.all([ctx.run(c, 1), ctx.run(c, 2)]), { roster: [c] });
    const one = await world.errand({ agents: [p], worker: { concurrency: 2 } });
    await world.errand({ agents: [p], worker: { concurrency: 3 } });
    const run = await one.start(p, null);
    await world.passUntil(() => gate.arrivals === 4);
    await run.cancel();
    await world.passUntil(async () => (await one.list({ states: ["ended"] })).length === 7);
    const kinds = (await one.list()).map((node) => node.end?.kind);
    expect(kinds).toEqual(Array.from({ length: 7 }, () => "canceled"));
    gate.open();
  });
});
