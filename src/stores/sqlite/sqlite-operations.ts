import { statSync } from "node:fs";
import type { RunId, TenantId, ThreadId } from "../../domain/id.ts";
import { checkLimits, type RunningCounts, type RunningLimits } from "../../runtime/ports/running-limits.ts";
import type {
  Finding,
  PruneRequest,
  StoreOperations,
  Tombstone,
} from "../../runtime/ports/store-operations.ts";
import { schemaVersion } from "../../sql/migrator.ts";
import { type SqlDatabase, sqliteTrouble } from "../../sql/sqlite-driver.ts";
import { finding, leaseFinding, unclaimedFinding, warning } from "../findings.ts";
import { OPERATIONS, TENANT_TABLES } from "./operation-statements.ts";
import {
  type EndedRoot,
  eraseTree,
  keepFloor,
  type OperationStatements,
  pruneThread,
  settledTrees,
} from "./retention.ts";
import { limitsOf } from "./limits-row.ts";
import { countedRoom } from "./running.ts";
import { prepareAll } from "./statements.ts";
import type { Transaction } from "./transaction.ts";

/** The store's own way to its connection. */
interface Connection {
  readonly path: string;
  readonly db: SqlDatabase;
  readonly tx: Transaction;
  readonly read: <T>(tenant: TenantId, read: () => T) => Promise<T>;
  readonly write: <T>(tenant: TenantId, apply: () => T) => Promise<T>;
}

const PAGE = 200;

/** A write-ahead log that has grown to this was not taken into the file for long: somebody reads all the time. */
const LARGE_WAL_BYTES = 256 * 1024 * 1024;
const MUCH_FREE_BYTES = 64 * 1024 * 1024;

/** What an operator does to an SQLite file. Every thread is pruned, and every tree erased, in a transaction of its own. */
export class SqliteOperations implements StoreOperations {
  readonly #at: Connection;
  readonly #sql: OperationStatements;

  constructor(connection: Connection) {
    this.#at = connection;
    this.#sql = prepareAll(connection.db, OPERATIONS);
  }

  async setLimits(tenant: TenantId, limits: RunningLimits): Promise<void> {
    checkLimits(limits);
    const { tx, write } = this.#at;
    await write(tenant, () => {
      this.#sql.setLimits.run(tenant, limits.tenant, limits.tree, JSON.stringify(limits.agents));
      tx.forgetLimits(tenant);
      tx.hint(tenant, null, "ready");
    });
  }

  getLimits(tenant: TenantId): Promise<RunningLimits> {
    return this.#at.read(tenant, () => limitsOf(this.#at.tx.sql.limits.get(tenant)));
  }

  countRunning(tenant: TenantId, rootRunId: RunId | null): Promise<RunningCounts> {
    const { tx, read } = this.#at;
    return read(tenant, () => {
      const room = countedRoom(tx.sql.running, tenant);
      const root = this.#sql.rootNo.get(tenant, rootRunId) as { readonly rootNo: number } | undefined;
      return {
        tenant: room.total,
        tree: root === undefined ? 0 : room.ofTree(root.rootNo),
        agents: room.byAgent(),
      };
    });
  }

  async prune(
    tenant: TenantId,
    { endedBefore, limit, dryRun = false }: PruneRequest,
  ): Promise<{ readonly trees: number; readonly runs: number }> {
    let trees = 0;
    let runs = 0;
    const seen = new Set<ThreadId>();
    for await (const { threadId } of this.#endedRoots(tenant, endedBefore)) {
      if (trees >= limit) break;
      if (seen.has(threadId)) continue;
      seen.add(threadId);
      const gone = await this.#pruneThread(tenant, threadId, endedBefore, dryRun);
      trees += gone.trees;
      runs += gone.runs;
    }
    if (!dryRun) await this.#pruneWorkers(tenant, endedBefore);
    return { trees, runs };
  }

  async listTombstones(tenant: TenantId, limit: number): Promise<readonly Tombstone[]> {
    const rows = await this.#at.read(tenant, () => this.#sql.tombstones.all(tenant, Math.max(0, limit)));
    return rows.map((row) => ({ ...(row as Tombstone) }));
  }

  async eraseUser(
    tenant: TenantId,
    user: string,
  ): Promise<{ readonly erased: number; readonly stillLive: number }> {
    const { tx, read } = this.#at;
    type Roots = readonly Parameters<typeof eraseTree>[3][];
    const roots = (await read(tenant, () => this.#sql.rootsOfUser.all(tenant, user))) as Roots;
    let erased = 0;
    let stillLive = 0;
    for (const root of roots) {
      const outcome = await this.#wiping(tenant, () => eraseTree(tx, this.#sql, tenant, root));
      if (outcome.erased) erased += outcome.runs;
      else stillLive += outcome.runs;
    }
    if (erased > 0) await this.#shrinkLog(tenant);
    return { erased, stillLive };
  }

  async eraseTenant(
    tenant: TenantId,
  ): Promise<
    | { readonly kind: "erased"; readonly runs: number }
    | { readonly kind: "refused"; readonly running: number }
  > {
    const { db, tx } = this.#at;
    const outcome = await this.#wiping(tenant, () => {
      const { count } = this.#sql.countRunning.get(tenant) as { readonly count: number };
      if (count > 0) return { kind: "refused", running: count } as const;
      let runs = 0;
      for (const table of TENANT_TABLES) {
        const { changes } = db.prepare(`DELETE FROM ${table} WHERE tenant = ?`).run(tenant);
        if (table === "runs") runs = Number(changes);
      }
      keepFloor(tx, this.#sql);
      tx.forgetLimits(tenant);
      return { kind: "erased", runs } as const;
    });
    if (outcome.kind === "erased") await this.#shrinkLog(tenant);
    return outcome;
  }

  inspect(tenant: TenantId): Promise<readonly Finding[]> {
    const { db, path, tx, read } = this.#at;
    return read(tenant, () => {
      const now = tx.clock.now();
      const { version } = this.#sql.version.get() as { readonly version: string };
      const { heartbeatAt } = this.#sql.oldestBeat.get(tenant) as { readonly heartbeatAt: number | null };
      const due = this.#sql.oldestDue.get(tenant, now) as Parameters<typeof unclaimedFinding>[1] | undefined;
      const { count } = this.#sql.countTombstones.get(tenant) as { readonly count: number };
      const synchronous = pragma(db, "synchronous");
      return [
        finding("SQLite", version),
        finding("schema", schemaVersion(db)),
        finding("durability", synchronous === 2 ? "full" : synchronous === 1 ? "normal" : synchronous),
        ...sizeFindings(db, path),
        finding("tombstones", count),
        ...leaseFinding(now, heartbeatAt),
        ...unclaimedFinding(now, due ?? null),
      ];
    });
  }

  /** Page by page, so that nothing is held while the threads of a page are pruned. */
  async *#endedRoots(tenant: TenantId, before: number): AsyncGenerator<EndedRoot> {
    let endedAt = 0;
    let runNo = 0;
    for (;;) {
      const from = [endedAt, before, endedAt, runNo, PAGE] as const;
      const page = (await this.#at.read(tenant, () =>
        this.#sql.endedRoots.all(tenant, ...from),
      )) as EndedRoot[];
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      ({ endedAt, runNo } = last);
    }
  }

  async #pruneThread(
    tenant: TenantId,
    threadId: ThreadId,
    before: number,
    dryRun: boolean,
  ): Promise<{ readonly trees: number; readonly runs: number }> {
    const { tx, read, write } = this.#at;
    const trees = await read(tenant, () => settledTrees(this.#sql, tenant, threadId, before));
    if (trees === null || trees.length === 0) return { trees: 0, runs: 0 };
    if (!dryRun) return write(tenant, () => pruneThread(tx, this.#sql, tenant, threadId, before));
    return { trees: trees.length, runs: trees.reduce((sum, tree) => sum + tree.runs, 0) };
  }

  async #pruneWorkers(tenant: TenantId, before: number): Promise<void> {
    const { tx, read, write } = this.#at;
    type Events = readonly { readonly seq: number; readonly at: number }[];
    for (;;) {
      const events = (await read(tenant, () => this.#sql.oldestEvents.all(tenant, PAGE))) as Events;
      const stays = events.findIndex((event) => event.at >= before);
      const last = (stays === -1 ? events : events.slice(0, stays)).at(-1);
      if (last !== undefined) {
        await write(tenant, () => {
          this.#sql.deleteEvents.run(tenant, last.seq);
          keepFloor(tx, this.#sql);
        });
      }
      if (stays !== -1 || events.length < PAGE) break;
    }
    await write(tenant, () => void this.#sql.deleteDeadWorkers.run(tenant, before));
  }

  /** What is deleted in the transaction is overwritten in the file, not just given free. */
  #wiping<T>(tenant: TenantId, apply: () => T): Promise<T> {
    const { db, write } = this.#at;
    return write(tenant, () => {
      db.exec("PRAGMA secure_delete = ON");
      try {
        return apply();
      } finally {
        db.exec("PRAGMA secure_delete = OFF");
      }
    });
  }

  /** The write-ahead log still holds what was overwritten; it is emptied now, or at a later checkpoint. */
  async #shrinkLog(tenant: TenantId): Promise<void> {
    const { db, read } = this.#at;
    await read(tenant, () => {
      try {
        db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch (error) {
        if (sqliteTrouble(error) !== "busy") throw error;
      }
    });
  }
}

function sizeFindings(db: SqlDatabase, path: string): readonly Finding[] {
  const page = Number(pragma(db, "page_size"));
  const free = Number(pragma(db, "freelist_count")) * page;
  const size = Number(pragma(db, "page_count")) * page;
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return [
    finding("file, bytes", size),
    free > MUCH_FREE_BYTES && free > size / 2
      ? warning("free in the file, bytes", free, "Run VACUUM on the file while no worker is at work.")
      : finding("free in the file, bytes", free),
    wal > LARGE_WAL_BYTES
      ? warning("write-ahead log, bytes", wal, "Look for a program that reads the file all the time.")
      : finding("write-ahead log, bytes", wal),
  ];
}

function pragma(db: SqlDatabase, name: string): string | number {
  const row = db.prepare(`PRAGMA ${name}`).get() as Readonly<Record<string, string | number>>;
  return Object.values(row)[0] ?? "unknown";
}
