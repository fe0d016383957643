import type { RunId, TenantId } from "../../domain/id.ts";
import { erasureMark } from "../../runtime/ports/erasure.ts";
import { checkLimits, type RunningCounts, type RunningLimits } from "../../runtime/ports/running-limits.ts";
import type {
  Finding,
  PruneRequest,
  StoreOperations,
  Tombstone,
} from "../../runtime/ports/store-operations.ts";
import { finding, leaseFinding, unclaimedFinding } from "../findings.ts";
import type { RunEntry } from "./run-table.ts";
import type { TenantTables } from "./tenant-tables.ts";

interface Host {
  readonly now: () => number;
  readonly tables: (tenant: TenantId) => TenantTables;
  readonly forget: (tenant: TenantId) => void;
  /** More may begin than before. */
  readonly stirred: (tenant: TenantId) => void;
}

/** What an operator does to a memory store. These may look at every row: none of them is on the way of a Run. */
export class MemoryOperations implements StoreOperations {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  async setLimits(tenant: TenantId, limits: RunningLimits): Promise<void> {
    checkLimits(limits);
    const { runs } = this.#host.tables(tenant);
    runs.room.limits = { tenant: limits.tenant, tree: limits.tree, agents: { ...limits.agents } };
    runs.queue.limitsChanged();
    this.#host.stirred(tenant);
  }

  async getLimits(tenant: TenantId): Promise<RunningLimits> {
    const { limits } = this.#host.tables(tenant).runs.room;
    return { ...limits, agents: { ...limits.agents } };
  }

  async countRunning(tenant: TenantId, rootRunId: RunId | null): Promise<RunningCounts> {
    const { room } = this.#host.tables(tenant).runs;
    const tree = rootRunId === null ? 0 : room.ofTree(rootRunId);
    return { tenant: room.total, tree, agents: room.byAgent() };
  }

  async prune(
    tenant: TenantId,
    { endedBefore, limit, dryRun = false }: PruneRequest,
  ): Promise<{ readonly trees: number; readonly runs: number }> {
    const tables = this.#host.tables(tenant);
    const oldest = tables.runs
      .roots()
      .filter(({ row }) => row.endedAt !== null)
      .sort((left, right) => (left.row.endedAt ?? 0) - (right.row.endedAt ?? 0));
    const roots = new Set<RunEntry>();
    for (const root of oldest) {
      if (roots.size >= limit) break;
      if (roots.has(root) || !isSettled(tables, root, endedBefore)) continue;
      for (const one of root.lane.runs) roots.add(one);
    }
    const trees = [...roots].map((root) => tables.runs.ofTree(root.row.rootRunId));
    if (!dryRun) {
      this.#remove(tables, trees);
      tables.operational.remove((entry) => entry.at < endedBefore);
      tables.workers.removeDead(endedBefore);
    }
    return { trees: trees.length, runs: trees.reduce((sum, tree) => sum + tree.length, 0) };
  }

  async listTombstones(tenant: TenantId, limit: number): Promise<readonly Tombstone[]> {
    const { tombstones } = this.#host.tables(tenant);
    return tombstones
      .slice(-Math.max(0, limit) || tombstones.length)
      .reverse()
      .map((one) => ({ ...one }));
  }

  async eraseUser(
    tenant: TenantId,
    user: string,
  ): Promise<{ readonly erased: number; readonly stillLive: number }> {
    const tables = this.#host.tables(tenant);
    let erased = 0;
    let stillLive = 0;
    for (const root of tables.runs.roots()) {
      if (root.user !== user) continue;
      const tree = tables.runs.ofTree(root.row.rootRunId);
      if (isSettled(tables, root, Number.POSITIVE_INFINITY)) {
        erase(tables, tree);
        erased += tree.length;
      } else stillLive += tree.length;
    }
    return { erased, stillLive };
  }

  async eraseTenant(
    tenant: TenantId,
  ): Promise<
    | { readonly kind: "erased"; readonly runs: number }
    | { readonly kind: "refused"; readonly running: number }
  > {
    const { counts } = this.#host.tables(tenant).runs;
    if (counts.running > 0) return { kind: "refused", running: counts.running };
    const runs = Object.values(counts).reduce((sum, count) => sum + count, 0);
    this.#host.forget(tenant);
    return { kind: "erased", runs };
  }

  async inspect(tenant: TenantId): Promise<readonly Finding[]> {
    const { runs, log, workers, tombstones } = this.#host.tables(tenant);
    const now = this.#host.now();
    const beats = workers.list().flatMap((worker) => (worker.dead ? [] : [worker.heartbeatAt]));
    const oldest = runs.queue.oldestDue(now);
    return [
      finding("log entries", log.size),
      finding("heap of this process, bytes", process.memoryUsage().heapUsed),
      finding("tombstones", tombstones.length),
      ...leaseFinding(now, beats.length === 0 ? null : Math.min(...beats)),
      ...unclaimedFinding(
        now,
        oldest === null ? null : { runId: oldest.row.runId, dueAt: oldest.row.dueAt ?? now },
      ),
    ];
  }

  #remove(tables: TenantTables, trees: readonly (readonly RunEntry[])[]): void {
    const gone = new Set(trees.flat());
    const roots = new Set([...gone].map((entry) => entry.row.rootRunId));
    const prunedAt = this.#host.now();
    const tombstones = trees.map((tree) => ({
      tenant: tables.tenant,
      rootRunId: tree[0]?.row.rootRunId as RunId,
      runs: tree.length,
      endedAt: Math.max(...tree.map((entry) => entry.row.endedAt ?? 0)),
      prunedAt,
    }));
    tables.tombstones = [...tables.tombstones.filter((one) => !roots.has(one.rootRunId)), ...tombstones];
    for (const row of tables.log.remove(roots)) {
      if (row.operationId !== null) tables.receipts.delete(row.operationId);
    }
    tables.lifecycle.remove(({ entry }) => entry.feed === "lifecycle" && roots.has(entry.row.rootRunId));
    tables.delegations.remove(roots);
    tables.tickets.remove(roots);
    for (const { row } of gone) tables.inbox.removeAll(row.runId);
    tables.runs.remove(gone);
  }
}

/** O2: whether every tree on the root's thread is over and done with since before the time. */
function isSettled(tables: TenantTables, root: RunEntry, before: number): boolean {
  return root.lane.runs.every(({ row: { rootRunId } }) => {
    const tree = tables.runs.ofTree(rootRunId);
    return (
      tree.every(
        ({ row }) => row.endedAt !== null && row.endedAt < before && !tables.inbox.hasUnread(row.runId),
      ) &&
      !tables.tickets.hasOpen(rootRunId) &&
      !tables.delegations.hasPendingIntent(rootRunId)
    );
  });
}

function erase(tables: TenantTables, tree: readonly RunEntry[]): void {
  const rootRunId = tree[0]?.row.rootRunId;
  if (rootRunId === undefined) return;
  tables.log.erase(rootRunId);
  tables.tickets.erase(rootRunId);
  for (const entry of tree) {
    tables.inbox.erase(entry.row.runId);
    entry.row.summary = erasureMark(entry.row.summary);
    entry.user = null;
  }
}
