import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionAgent } from "../../agents/function/function-agent.ts";
import { modelAgent } from "../../agents/model/model-agent.ts";
import { scriptedModel } from "../../agents/model/scripted-model.ts";
import { type TenantId, parseTenantId } from "../../domain/id.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import { openSqlite } from "../../sql/sqlite-driver.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { createSqliteStore } from "../../stores/sqlite/index.ts";
import { createErrand } from "../../surfaces/library/create-errand.ts";
import { FaultyStore } from "../../testing/faulty-store.ts";
import { NO_FAULTS } from "../../testing/fault-plan.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { LogRow, Store } from "../ports/store.ts";
import type { ProblemCode } from "./problem.ts";
import { verifyStore } from "./verify-store.ts";

const TENANT: TenantId = parseTenantId("acme");

const lookUp = defineTool({
  name: "look_up",
  description: "Looks something up.",
  inputSchema: { type: "object" },
  replay: "safe",
  effect: "read_only",
  run: () => ({ found: 7 }),
});

const helper = functionAgent({
  name: "helper",
  version: "1",
  inputSchema: true,
  outputSchema: true,
  mayAsk: true,
  tools: [lookUp],
  run: async (ctx) => {
    const seen = await ctx.tool(lookUp, {});
    const answer = await ctx.ask({ prompt: "Is it right?" });
    return { seen, answer };
  },
});

const leader = modelAgent({
  name: "leader",
  instructions: "Delegate.",
  tools: [lookUp],
  roster: [helper],
  model: scriptedModel([
    { calls: [{ tool: "look_up", input: {} }] },
    { calls: [{ tool: "agent_run", input: { agent: "helper", goal: "Check it.", input: {} } }] },
    "All is well.",
  ]),
});

/** One tree that has ended, one that was canceled while it waited, and one that still waits for an answer. */
async function fill(store: Store): Promise<void> {
  // The connection is closed with the Errand, the store is not.
  const connection = new FaultyStore(store, { client: "host", clock: new VirtualClock(), plan: NO_FAULTS });
  await using errand = await createErrand({ store: connection, agents: [leader], tenant: TENANT });
  const ticketOf = async (runId: string): Promise<string> => {
    for (;;) {
      const [ticket] = await errand.tickets({ rootRunId: runId });
      if (ticket !== undefined) return ticket.ticketId;
      await errand.sleep(5);
    }
  };
  const done = await errand.start(leader, "Go.");
  await errand.resume(await ticketOf(done.runId), "yes");
  await done.result({ timeoutMs: 10_000 });
  const canceled = await errand.start(leader, "Go, and stop.");
  await ticketOf(canceled.runId);
  await canceled.cancel({ reason: "changed my mind" });
  await canceled.end({ timeoutMs: 10_000 });
  const waiting = await errand.start(leader, "Go, and wait.");
  await ticketOf(waiting.runId);
  while ((await waiting.status()).state !== "awaiting") await errand.sleep(5);
  while ((await store.pendingIntents(TENANT, 1)).length > 0) await errand.sleep(5);
  for (const { rootRunId } of await errand.tickets()) expect(rootRunId).toBe(waiting.runId);
}

async function codes(store: Store): Promise<Set<ProblemCode>> {
  const { problems } = await verifyStore(store, TENANT);
  return new Set(problems.map((problem) => problem.code));
}

/** The same store, whose answers to some reads are changed. */
function altered(store: Store, changes: Partial<Record<keyof Store, (result: never) => unknown>>): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = member.bind(target) as (...args: unknown[]) => unknown;
      const change = changes[name as keyof Store];
      return change === undefined
        ? call
        : async (...args: unknown[]) => change((await call(...args)) as never);
    },
  });
}

describe("L2: verify on the memory store", () => {
  let store: Store;
  let log: readonly LogRow[];

  beforeAll(async () => {
    store = createMemoryStore();
    await fill(store);
    log = await store.readLog(TENANT, { all: true }, 0, 10_000);
  });
  afterAll(() => store.close());

  /** The store with another log, all on its first page. */
  const withLog = (rows: readonly LogRow[]): Store => {
    let read = false;
    return altered(store, {
      readLog: () => {
        const page = read ? [] : rows;
        read = true;
        return page;
      },
    });
  };

  test("finds nothing wrong in what the runtime wrote, and says how far it is", async () => {
    const phases = new Set<string>();
    const report = await verifyStore(store, TENANT, { progress: ({ phase }) => phases.add(phase) });
    expect(report.problems).toEqual([]);
    expect(report).toMatchObject({ entries: log.length, runs: 6, truncated: false });
    expect([...phases]).toEqual(["log", "rows", "feed"]);
  });

  test("finds every entry that is missing, doubled, changed or out of its place", async () => {
    for (const [at, row] of log.entries()) {
      const missing = log.filter((other) => other !== row);
      expect({ at, found: await codes(withLog(missing)) }).not.toEqual({ at, found: new Set() });
      const doubled = [...log.slice(0, at), row, ...log.slice(at)];
      expect({ at, found: await codes(withLog(doubled)) }).not.toEqual({ at, found: new Set() });
      const changed = log.with(at, { ...row, body: row.body.replace("a", "b") });
      expect([at, ...(await codes(withLog(changed)))]).toContain("digest_differs");
      const before = log[at - 1];
      if (before === undefined || before.threadId !== row.threadId) continue;
      const swapped = log.with(at, before).with(at - 1, row);
      expect({ at, found: await codes(withLog(swapped)) }).not.toEqual({ at, found: new Set() });
    }
  });

  test("finds an answer that was changed together with its commit's digest, by the history that follows", async () => {
    const at = log.findIndex((row) => row.body.includes('"found":7') && row.body.includes("batch_finalized"));
    const row = log[at];
    if (row === undefined) throw new Error("no such entry");
    const body = row.body.replace('"found":7', '"found":8');
    const changed = log.with(at, { ...row, body, digest: sha256Hex(body) });
    expect(await codes(withLog(changed))).toContain("history_differs");
  });

  test.each([
    ["runId", "run_00000000"],
    ["rootRunId", "run_00000000"],
    ["parentRunId", "run_00000000"],
    ["threadId", "thr_00000000"],
    ["delegationId", null],
    ["agent", "other"],
    ["publication", "other@0000000000000000"],
    ["depth", 9],
    ["priority", 9],
    ["state", "paused"],
    ["lane", null],
    ["version", 99],
    ["signalSeq", 99],
    ["controlSeq", 99],
    ["claimedBy", "inc_00000000"],
    ["createdAt", 1],
    ["endedAt", 1],
    ["summary", "{}"],
  ])("finds another %s in a run row", async (field, value) => {
    const change = <T extends object | null>(row: T): T => row && { ...row, [field]: value };
    const lying = altered(store, {
      getRun: change,
      listRuns: (rows: readonly object[]) => rows.map(change),
    });
    expect([...(await codes(lying))].some((code) => code.startsWith("row_"))).toBe(true);
  });

  test.each([
    ["listDelegations", "status", "weird"],
    ["listDelegations", "childRunId", "run_00000000"],
    ["listDelegations", "contractDigest", "0"],
    ["listDelegations", "intentDelivered", null],
    ["listDelegations", "step", 99],
    ["listInbox", "kind", "resumed"],
    ["listInbox", "digest", "0"],
    ["listInbox", "body", "{}"],
    ["listInbox", "status", "discarded"],
    ["listTickets", "status", "weird"],
    ["listTickets", "decisionDigest", "0"],
    ["listTickets", "closeReason", "because"],
    ["listTickets", "body", "{}"],
    ["listTickets", "openedAt", 1],
  ] as const)("finds in %s another %s", async (method, field, value) => {
    const lying = altered(store, {
      [method]: (rows: readonly object[]) => rows.map((row) => ({ ...row, [field]: value })),
    });
    expect(await codes(lying)).toEqual(new Set(["row_differs"]));
  });

  test.each(["listRuns", "listDelegations", "listInbox", "listTickets"] as const)(
    "finds a row that %s does not show",
    async (method) => {
      const lying = altered(store, {
        [method]: (rows: readonly object[]) => rows.slice(1),
        ...(method === "listRuns" ? { getRun: () => null } : {}),
      });
      expect(await codes(lying)).toContain("row_missing");
    },
  );

  test("finds an entry that the lifecycle feed leaves out, and a publication that was changed", async () => {
    const feed = altered(store, {
      readFeed: (page: { readonly entries: readonly unknown[] }) => ({
        ...page,
        entries: page.entries.slice(1),
      }),
    });
    expect(await codes(feed)).toEqual(new Set(["feed_differs"]));
    const publication = altered(store, {
      getPublication: (row: { readonly body: string }) => ({
        ...row,
        body: row.body.replace("Delegate.", "Do not."),
      }),
    });
    expect(await codes(publication)).toEqual(new Set(["publication_differs"]));
  });

  test("lists as many problems as it was asked for", async () => {
    const lying = altered(store, { listTickets: () => [], listInbox: () => [] });
    const report = await verifyStore(lying, TENANT, { limit: 1 });
    expect(report.problems).toHaveLength(1);
    expect(report.truncated).toBe(true);
  });
});

describe("L2: verify on SQLite", () => {
  let folder: string;
  let copies = 0;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "errand-verify-"));
    const store = await createSqliteStore(join(folder, "whole.db"), { durability: "normal", pollMs: 0 });
    await fill(store);
    await store.close();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function after(sql: string): Promise<Set<ProblemCode>> {
    const path = join(folder, `copy-${++copies}.db`);
    await copyFile(join(folder, "whole.db"), path);
    const db = await openSqlite(path);
    const { changes } = sql === "" ? { changes: 1 } : db.prepare(sql).run();
    expect({ sql, changes }).not.toEqual({ sql, changes: 0 });
    db.close();
    const store = await createSqliteStore(path, { durability: "normal", pollMs: 0 });
    try {
      return await codes(store);
    } finally {
      await store.close();
    }
  }

  test("finds nothing wrong in what the runtime wrote", async () => {
    expect(await after("")).toEqual(new Set());
  });

  test.each<readonly [string, ProblemCode]>([
    ["UPDATE runs SET state = 'waiting' WHERE state = 'ended'", "row_differs"],
    ["UPDATE runs SET version = version + 1 WHERE ended_at IS NOT NULL", "row_differs"],
    ["UPDATE runs SET signal_seq = signal_seq + 1", "row_differs"],
    ["UPDATE runs SET summary = '{}' WHERE depth = 1", "row_differs"],
    ["UPDATE delegations SET status = 'open' WHERE status = 'closed'", "row_differs"],
    ["DELETE FROM delegations WHERE status = 'closed'", "row_missing"],
    ["UPDATE inbox SET status = 'unread' WHERE kind = 'result'", "row_differs"],
    ["UPDATE inbox SET body = replace(body, 'yes', 'no')", "row_differs"],
    ["DELETE FROM inbox WHERE kind = 'result'", "row_missing"],
    ["UPDATE tickets SET status = 'open', decision_id = NULL WHERE status = 'decided'", "row_differs"],
    ["DELETE FROM tickets WHERE status = 'open'", "row_missing"],
    [
      "UPDATE log SET body = replace(body, 'yes', 'no ') WHERE body LIKE '%ticket_decided%'",
      "digest_differs",
    ],
    ["DELETE FROM log WHERE seq = (SELECT max(seq) FROM log WHERE source = 'lane')", "row_differs"],
    ["DELETE FROM log WHERE seq = (SELECT min(seq) FROM log WHERE source = 'lane')", "version_gap"],
    [
      "UPDATE log SET lifecycle = 0 WHERE seq = (SELECT max(seq) FROM log WHERE lifecycle = 1)",
      "feed_differs",
    ],
    ["UPDATE publications SET body = replace(body, 'Delegate.', 'Do not.')", "publication_differs"],
    ["DELETE FROM publications", "publication_differs"],
  ])("%s: %s", async (sql, code) => {
    expect(await after(sql)).toContain(code);
  });
});
