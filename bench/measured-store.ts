import { functionAgent } from "../src/surfaces/library/index.ts";
import { createMemoryStore } from "../src/stores/memory/index.ts";
import type { Commit, Store } from "../src/runtime/ports/store.ts";
import type { SqlDatabase } from "../src/sql/sqlite-driver.ts";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { newRun } from "../src/runtime/commit/encode-commit.ts";
import { PublicationCatalog } from "../src/runtime/catalog/publication-catalog.ts";

/** A store, and what has gone through it. */
export interface MeasuredStore {
  readonly store: Store;
  readonly count: { commits: number; rows: number; bytes: number; statements: number };
}

export async function openMeasured(kind: "memory" | "sqlite", file: string): Promise<MeasuredStore> {
  const count = { commits: 0, rows: 0, bytes: 0, statements: 0 };
  const wrap = (db: SqlDatabase): SqlDatabase => ({
    exec: (sql) => {
      count.statements++;
      db.exec(sql);
    },
    prepare: (sql) => {
      const statement = db.prepare(sql);
      return {
        run: (...values) => {
          count.statements++;
          return statement.run(...values);
        },
        get: (...values) => {
          count.statements++;
          return statement.get(...values);
        },
        all: (...values) => {
          count.statements++;
          return statement.all(...values);
        },
      };
    },
    close: () => db.close(),
  });
  const store = kind === "memory" ? createMemoryStore() : await openSqliteStore(file, { wrap });
  const commit = store.commit.bind(store);
  store.commit = (one) => {
    count.commits++;
    count.rows += rowsOf(one);
    count.bytes += bytesOf(one);
    return commit(one);
  };
  return { store, count };
}

/** Rows that a commit writes: inserted or updated, each once. */
export function rowsOf(commit: Commit): number {
  return (
    (commit.lane === null ? 0 : 2) +
    commit.signals.length * 2 +
    commit.create.length * 2 +
    commit.openDelegations.length +
    commit.closeDelegations.length +
    commit.cancelDelegations.length +
    commit.deliver.length * 2 +
    commit.readInbox.length +
    commit.openTickets.length +
    commit.closeTickets.length +
    (commit.decideTicket === null ? 0 : 1)
  );
}

/** Text that a commit hands to the store, keys and fixed columns not counted. */
export function bytesOf(commit: Commit): number {
  let bytes = (commit.lane?.body.length ?? 0) + (commit.lane?.summary?.length ?? 0);
  for (const run of commit.create) bytes += run.body.length + run.summary.length;
  for (const delivery of commit.deliver) bytes += delivery.body.length;
  for (const signal of commit.signals) bytes += signal.body.length;
  return bytes;
}

/** Fills a store with finished Runs, each created, claimed and ended like any other. */
export async function finishedRuns(store: Store, howMany: number): Promise<void> {
  const agent = functionAgent({
    name: "finished",
    version: "1",
    inputSchema: { type: "number" },
    outputSchema: { type: "number" },
    run: async (_ctx, input) => input,
  });
  const catalog = new PublicationCatalog(store);
  const { ref, limits } = catalog.load(agent);
  const tenant = "default" as never;
  const incarnation = "inc_0123456789abcdef" as never;
  await catalog.publish(tenant);
  await store.registerWorker(tenant, {
    incarnation,
    name: "filler",
    host: "bench",
    pid: 0,
    publications: [ref],
  });
  const lists = {
    signals: [],
    openDelegations: [],
    closeDelegations: [],
    cancelDelegations: [],
    intentsDelivered: [],
  };
  const none = {
    ...lists,
    deliver: [],
    readInbox: [],
    openTickets: [],
    closeTickets: [],
    decideTicket: null,
    claim: null,
  };
  const BATCH = 128;
  for (let at = 0; at < howMany; at += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, howMany - at) }, (_, one) =>
      String(at + one).padStart(24, "0"),
    );
    await Promise.all(
      ids.map((id) => {
        const runId = `run_${id}` as never;
        const header = {
          runId,
          rootRunId: runId,
          threadId: `thr_${id}` as never,
          origin: null,
          depth: 0,
          lineage: ["finished"],
          agent: "finished",
          publication: ref,
          input: 1,
          outputSchema: true,
          limits,
          treeRuns: 1,
          priority: 0,
          user: null,
        };
        return store.commit({
          ...none,
          tenant,
          rootRunId: runId,
          operationId: `start:${id}` as never,
          digest: id,
          lane: null,
          create: [newRun(header, 0, false)],
        });
      }),
    );
    const claims = await store.claim(tenant, { incarnation, carries: new Set([ref]), limit: BATCH });
    await Promise.all(
      claims.map(({ runId, epoch, version }) =>
        store.commit({
          ...none,
          tenant,
          rootRunId: runId,
          operationId: `end:${runId}` as never,
          digest: runId,
          create: [],
          lane: {
            runId,
            incarnation,
            epoch,
            version,
            controlSeqSeen: null,
            summary: null,
            lifecycle: true,
            next: { kind: "end", endKind: "completed" },
            body: JSON.stringify([
              { type: "attempt_started", attempt: 1 },
              { type: "run_ended", end: { kind: "completed", output: 1 }, usage: null, treeRunsUsed: 1 },
            ]),
          },
        }),
      ),
    );
  }
  await store.deregisterWorker(tenant, incarnation);
}
