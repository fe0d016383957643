import type { RunId, TenantId } from "../../domain/id.ts";
import {
  agentOf,
  checkLimits,
  NO_LIMITS,
  type RunningCounts,
  type RunningLimits,
} from "../../runtime/ports/running-limits.ts";
import type {
  Finding,
  PruneRequest,
  StoreOperations,
  Tombstone,
} from "../../runtime/ports/store-operations.ts";
import { finding, leaseFinding, unclaimedFinding, warning } from "../findings.ts";
import { RunningRoom } from "../running-room.ts";
import type { Database } from "./database.ts";

interface Connection {
  readonly database: Database;
  readonly now: () => number;
  /** The time that a test gives; null for the database's. */
  readonly given: () => number | null;
  /** More may begin than before. */
  readonly stirred: (tenant: TenantId) => void;
}

const PAGE = 200;

/** An open transaction holds back vacuum, and with it every table's size. */
const LONG_TRANSACTION_MS = 60_000;
const MUCH_LAG_MS = 10_000;

/** What an operator does to a PostgreSQL schema. Every thread is pruned in a transaction of its own. */
export class PostgresOperations implements StoreOperations {
  readonly #at: Connection;
  readonly #database: Database;

  constructor(connection: Connection) {
    this.#at = connection;
    this.#database = connection.database;
  }

  async setLimits(tenant: TenantId, limits: RunningLimits): Promise<void> {
    checkLimits(limits);
    const agents = JSON.stringify(limits.agents);
    await this.#database.call("set_limits", [tenant, limits.tenant, limits.tree, agents]);
    this.#at.stirred(tenant);
  }

  async getLimits(tenant: TenantId): Promise<RunningLimits> {
    type Stored = Omit<RunningLimits, "agents"> & { readonly agents: string };
    const [row] = await this.#database.call<Stored>("limits", [tenant]);
    if (row === undefined) return NO_LIMITS;
    return { ...row, agents: JSON.parse(row.agents) as RunningLimits["agents"] };
  }

  async countRunning(tenant: TenantId, rootRunId: RunId | null): Promise<RunningCounts> {
    type Running = { readonly publication: string; readonly rootRunId: RunId };
    const room = new RunningRoom<RunId>();
    for (const run of await this.#database.call<Running>("running", [tenant])) {
      room.add(run.rootRunId, agentOf(run.publication));
    }
    const tree = rootRunId === null ? 0 : room.ofTree(rootRunId);
    return { tenant: room.total, tree, agents: room.byAgent() };
  }

  async prune(
    tenant: TenantId,
    { endedBefore, limit, dryRun = false }: PruneRequest,
  ): Promise<{ readonly trees: number; readonly runs: number }> {
    type Ended = { readonly runNo: number; readonly threadNo: number; readonly endedAt: number };
    let trees = 0;
    let runs = 0;
    const seen = new Set<number>();
    let last: Ended | undefined;
    do {
      const from = [tenant, endedBefore, last?.endedAt ?? -1, last?.runNo ?? 0, PAGE];
      const page: readonly Ended[] = await this.#database.call<Ended>("ended_threads", from);
      for (const { threadNo } of page) {
        if (trees >= limit) break;
        if (seen.has(threadNo)) continue;
        seen.add(threadNo);
        const values = [tenant, threadNo, endedBefore, dryRun, this.#at.given()];
        const [gone] = await this.#database.call<typeof NOTHING>("prune_thread", values);
        trees += gone?.trees ?? 0;
        runs += gone?.runs ?? 0;
      }
      last = page.length < PAGE ? undefined : page.at(-1);
    } while (last !== undefined && trees < limit);
    if (!dryRun) await this.#database.call("prune_workers", [tenant, endedBefore]);
    return { trees, runs };
  }

  listTombstones(tenant: TenantId, limit: number): Promise<readonly Tombstone[]> {
    return this.#database.call<Tombstone>("tombstones", [tenant, Math.max(0, limit)]);
  }

  async eraseUser(
    tenant: TenantId,
    user: string,
  ): Promise<{ readonly erased: number; readonly stillLive: number }> {
    type Counts = { readonly erased: number; readonly stillLive: number };
    const [row] = await this.#database.call<Counts>("erase_user", [tenant, user]);
    return row ?? { erased: 0, stillLive: 0 };
  }

  async eraseTenant(
    tenant: TenantId,
  ): Promise<
    | { readonly kind: "erased"; readonly runs: number }
    | { readonly kind: "refused"; readonly running: number }
  > {
    type Counts = { readonly running: number; readonly runs: number };
    const [row] = await this.#database.call<Counts>("erase_tenant", [tenant]);
    const { running, runs } = row ?? { running: 0, runs: 0 };
    return running > 0 ? { kind: "refused", running } : { kind: "erased", runs };
  }

  async inspect(tenant: TenantId): Promise<readonly Finding[]> {
    const now = this.#at.now();
    const [row] = await this.#database.call<Inspected>("inspect", [tenant, now, this.#database.schema]);
    if (row === undefined) return [];
    const { size, lag, oldestTransaction, heartbeatAt, runId, dueAt } = row;
    return [
      finding("PostgreSQL", row.version),
      row.durability === "off"
        ? warning("synchronous_commit", row.durability, "Set it to on: an acknowledged commit may be lost.")
        : finding("synchronous_commit", row.durability),
      finding("database, bytes", Number(size)),
      Number(row.deadRows) > Number(row.liveRows) + 10_000
        ? warning(
            "dead rows",
            Number(row.deadRows),
            "Look at autovacuum, and for a transaction that stays open.",
          )
        : finding("dead rows", Number(row.deadRows)),
      finding("standbys", Number(row.standbys)),
      lag > MUCH_LAG_MS
        ? warning("replication lag, ms", lag, "Look at the standby's load and its connection.")
        : finding("replication lag, ms", lag),
      oldestTransaction > LONG_TRANSACTION_MS
        ? warning("oldest transaction, ms", oldestTransaction, "End it: feeds and vacuum wait for it.")
        : finding("oldest transaction, ms", oldestTransaction),
      ...leaseFinding(now, heartbeatAt),
      ...unclaimedFinding(now, runId === null || dueAt === null ? null : { runId, dueAt }),
    ];
  }
}

const NOTHING = { trees: 0, runs: 0 };

interface Inspected {
  readonly version: string;
  readonly durability: string;
  readonly size: number | string;
  readonly standbys: number | string;
  readonly lag: number;
  readonly oldestTransaction: number;
  readonly deadRows: number | string;
  readonly liveRows: number | string;
  readonly heartbeatAt: number | null;
  readonly dueAt: number | null;
  readonly runId: RunId | null;
}
