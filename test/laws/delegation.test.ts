import { expect, test } from "vitest";
import { derivedIds } from "../../src/domain/delegation/derived-ids.ts";
import { parseRunId } from "../../src/domain/id.ts";
import type { Commit } from "../../src/runtime/ports/store.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { factTypes, factsOf, factsOfType, laneFacts } from "../support/facts.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Gate, Outside } from "../support/outside.ts";
import { LEASE_MS, onStores, until } from "../support/world.ts";

const double = fn("double", (_ctx, n) => (n as number) * 2);
const twice = fn("twice", async (ctx, n) => ctx.run(double, await ctx.run(double, n)), { roster: [double] });

onStores("Delegation", { anyWorker: true }, (open) => {
  test("L12 the ids of a delegation are a function of parent run and call, of fixed length, the same on every read", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [twice] });
    const run = await errand.start(twice, 5, { key: "the same work" });
    expect(await run.result()).toBe(20);
    const { children } = await run.tree();
    const derived = [1, 2].map((step) => derivedIds(run.runId, { step, index: 0 }));
    expect(children.map((one) => one.runId)).toEqual(derived.map((ids) => ids.childRunId));
    expect(children.map((one) => one.threadId)).toEqual(derived.map((ids) => ids.childThreadId));
    expect(children.map((one) => one.delegationId)).toEqual(derived.map((ids) => ids.delegationId));
    for (const { runId, delegationId } of children)
      expect([runId.length, delegationId?.length]).toEqual([36, 36]);

    // Another store, the same start: the same tree of ids.
    await using other = await open();
    const again = await other.errand({ agents: [twice] });
    const second = await again.start(twice, 5, { key: "the same work" });
    await second.result();
    expect((await second.tree()).children.map((one) => one.runId)).toEqual(children.map((one) => one.runId));
  });

  test("L12 ids keep their length at any depth", async () => {
    await using world = await open();
    const leaf = fn("leaf", (ctx) => ctx.runId);
    let top = leaf;
    for (let depth = 1; depth <= 6; depth++) {
      const below = top;
      top = fn(`level-${depth}`, (ctx, input) => ctx.run(below, input), { roster: [below] });
    }
    const errand = await world.errand({ agents: [top] });
    const deepest = (await errand.run(top, null)) as string;
    expect(deepest).toMatch(/^run_[0-9a-f]{32}$/);
    expect((await errand.status(deepest)).depth).toBe(6);
  });

  test("L13 a child is an ordinary run: a thread of its own and the facts that a root run has", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const worker = fn("worker", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    const parent = fn("parent", (ctx) => ctx.run(worker, null), { roster: [worker] });
    const errand = await world.errand({ agents: [parent, worker] });
    const root = await errand.start(worker, null);
    const above = await errand.start(parent, null);
    expect(await above.result()).toBe(await root.result());
    const [child] = (await above.tree()).children;
    expect(await factTypes(errand, String(child?.runId))).toEqual(await factTypes(errand, root.runId));
    expect(new Set([child?.threadId, root.threadId, above.threadId]).size).toBe(3);
    // Nothing of the child's work is on the parent's thread.
    const onThread = await errand.store.readLog(errand.tenant, { threadId: above.threadId! }, 0, 100);
    expect(new Set(onThread.map((row) => row.runId))).toEqual(new Set([above.runId]));
    expect(await factTypes(errand, above.runId)).not.toContain("call_executing:mail");
    expect(outside.count("mail:a")).toBe(2);
  });

  test("L14 the relationship, its contract and the child are one commit, before the child does anything", async () => {
    await using world = await open();
    const errand = await world.errand({ agents: [twice] });
    const run = await errand.start(twice, 1);
    await run.result();
    const opened = await factsOfType(errand, run.runId, "delegation_opened");
    for (const { childRunId, contractDigest, seq } of opened) {
      const facts = await factsOf(errand, childRunId);
      const [created, first] = facts;
      expect(created).toMatchObject({ type: "run_created", seq: seq + 1, source: "signal" });
      expect(first?.seq).toBeGreaterThan(seq + 1);
      const header = created?.type === "run_created" ? created.header : undefined;
      expect(header?.origin?.contract).toMatchObject({
        version: 1,
        childRunId,
        inputSchema: true,
        outputSchema: true,
      });
      expect(header?.origin?.contract.goal).toMatch(/\S/);
      expect(contractDigest).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  test("L14 a worker that dies right after the delegating commit leaves the same child to the next one", async () => {
    await using world = await open();
    const outside = new Outside();
    const mail = outside.tool("mail");
    const child = fn("child", (ctx) => ctx.tool(mail, { id: "a" }), { tools: [mail] });
    const parent = fn("parent", (ctx) => ctx.run(child, null), { roster: [child] });
    let first: Errand | undefined;
    first = await world.errand({
      agents: [parent],
      hooks: {
        committed: (commit) => {
          if (commit.create.length === 0 || commit.lane === null) return;
          first?.worker?.kill();
          throw brokenConnection();
        },
      },
    });
    const run = await first.start(parent, null);
    await until(() => expect(first.worker?.active).toBe(0));
    const second = await world.errand({ agents: [parent] });
    await world.pass(LEASE_MS * 2);
    expect(await second.result(run.runId)).toBe("mail a");
    expect((await second.tree(run.runId)).children).toHaveLength(1);
    expect(outside.done).toEqual(["mail:a"]);
  });

  test("L14 the reply of a delegating commit is lost: it is asked for again and the same child starts", async () => {
    await using world = await open();
    let lost = 0;
    const errand = await world.errand({
      agents: [twice],
      hooks: {
        committed: (commit, outcome) => {
          if (commit.lane === null || commit.create.length === 0 || outcome.kind !== "committed") return;
          lost += 1;
          throw brokenConnection();
        },
      },
    });
    const run = await errand.start(twice, 3);
    await world.passUntil(async () => (await run.status()).state === "ended");
    expect(await run.result()).toBe(12);
    expect(lost).toBe(2);
    expect((await run.tree()).children).toHaveLength(2);
  });

  test("L15 the child's end, the envelope and the parent's wake are one commit; consuming it and answering the call are another", async () => {
    await using world = await open();
    const seen: unknown[] = [];
    const look = await world.connect();
    const errand = await world.errand({
      agents: [twice],
      hooks: {
        committed: async (commit) => {
          if (commit.deliver.length === 0) return;
          expect(laneFacts(commit).at(-1)?.type).toBe("run_ended");
          const [delivery] = commit.deliver;
          const parentRunId = parseRunId(String(delivery?.parentRunId));
          const parent = await look.getRun(commit.tenant, parentRunId);
          const inbox = await look.listInbox(commit.tenant, parentRunId);
          const child = await look.getRun(commit.tenant, parseRunId(String(delivery?.childRunId)));
          const row = inbox.find((one) => one.childRunId === child?.runId);
          seen.push([child?.state, row?.status, parent?.state === "ready" || parent?.state === "running"]);
        },
      },
    });
    const run = await errand.start(twice, 3);
    await run.result();
    expect(seen).toEqual([
      ["ended", "unread", true],
      ["ended", "unread", true],
    ]);
    const consumed = await factsOfType(errand, run.runId, "child_result_consumed");
    const answered = await factsOfType(errand, run.runId, "call_completed");
    const closed = await factsOfType(errand, run.runId, "delegation_closed");
    expect(consumed.map((fact) => fact.seq)).toEqual(answered.map((fact) => fact.seq));
    expect(consumed.map((fact) => fact.seq)).toEqual(closed.map((fact) => fact.seq));
    expect((await look.listInbox(errand.tenant, run.runId)).map((row) => row.status)).toEqual([
      "consumed",
      "consumed",
    ]);
  });

  test("L16 the same delivery again is one delivery; of two that differ the first stands and the second is told", async () => {
    await using world = await open();
    let ending: Commit | undefined;
    const gate = new Gate();
    const last = fn("last", async () => {
      await gate.wait();
      return "done";
    });
    const parent = fn("parent", async (ctx, n) => [await ctx.run(double, n), await ctx.run(last, null)], {
      roster: [double, last],
    });
    const errand = await world.errand({
      agents: [parent],
      hooks: { committed: (commit) => void (commit.deliver.length > 0 && (ending ??= commit)) },
    });
    const run = await errand.start(parent, 21);
    await until(() => expect(gate.arrivals).toBe(1));
    const commit = ending!;
    const [delivery] = commit.deliver;
    expect(await errand.store.commit(commit)).toMatchObject({ kind: "duplicate" });
    const only = { ...commit, lane: null, readInbox: [], openDelegations: [], claim: null, signals: [] };
    const repeated = await errand.store.commit({
      ...only,
      operationId: `${commit.operationId}:again` as never,
    });
    expect(repeated).toMatchObject({ kind: "committed", receipt: { conflicts: [] } });
    const forged = { ...delivery!, digest: "f".repeat(64), body: delivery!.body.replace("42", "43") };
    const second = { ...only, operationId: "forged" as never, digest: "f".repeat(64), deliver: [forged] };
    expect(await errand.store.commit(second)).toMatchObject({
      kind: "committed",
      receipt: { conflicts: [delivery?.delegationId] },
    });
    gate.open();
    expect(await run.result()).toEqual([42, "done"]);
    expect(await factsOfType(errand, run.runId, "child_result_consumed")).toHaveLength(2);
  });

  test("L16 a child whose end meets another result is kept as a conflict fact of its parent, and changes nothing", async () => {
    await using world = await open();
    world.tampered = true;
    const gate = new Gate();
    const slow = fn("slow", async () => {
      await gate.wait();
      return "real";
    });
    const parent = fn("parent", (ctx) => ctx.run(slow, null), { roster: [slow] });
    const errand = await world.errand({ agents: [parent] });
    const run = await errand.start(parent, null);
    await until(() => expect(gate.arrivals).toBe(1));
    // Somebody else delivers first, as a peer might that answers twice.
    const [child] = (await run.tree()).children;
    const ids = { delegationId: child!.delegationId!, childRunId: child!.runId, parentRunId: run.runId };
    const { usage } = child!;
    const end = { kind: "completed", output: "forged" };
    const envelope = { kind: "result", ...ids, contractVersion: 1, end, usage, treeRunsUsed: 1 };
    await errand.store.commit({
      tenant: errand.tenant,
      rootRunId: run.runId,
      operationId: "forged" as never,
      digest: "a".repeat(64),
      lane: null,
      signals: [],
      create: [],
      openDelegations: [],
      closeDelegations: [],
      cancelDelegations: [],
      intentsDelivered: [],
      deliver: [{ ...ids, kind: "result", digest: "a".repeat(64), body: JSON.stringify(envelope) }],
      readInbox: [],
      openTickets: [],
      closeTickets: [],
      decideTicket: null,
      claim: null,
    });
    expect(await run.result()).toBe("forged");
    const history = await factTypes(errand, run.runId);
    gate.open();
    await until(async () => expect((await errand.status(child!.runId)).state).toBe("ended"));
    await until(async () =>
      expect(await factsOfType(errand, run.runId, "late_result")).toMatchObject([
        { delegationId: ids.delegationId, verdict: "conflict" },
      ]),
    );
    expect((await factTypes(errand, run.runId)).slice(0, history.length)).toEqual(history);
    expect(await run.result()).toBe("forged");
    expect(world.told).toContainEqual(expect.objectContaining({ type: "run_warning", runId: child?.runId }));
  });
});
