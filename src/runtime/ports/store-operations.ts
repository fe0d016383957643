import type { RunId, TenantId } from "../../domain/id.ts";
import type { RunningCounts, RunningLimits } from "./running-limits.ts";

/** What is left of a tree whose rows were pruned (L2). */
export interface Tombstone {
  readonly tenant: TenantId;
  readonly rootRunId: RunId;
  readonly runs: number;
  /** When the last Run of the tree ended. */
  readonly endedAt: number;
  readonly prunedAt: number;
}

/** One thing that an operator should know about a store, with what to do about it. */
export interface Finding {
  readonly name: string;
  readonly value: string | number;
  readonly level: "ok" | "warn" | "fail";
  /** What to do; null when nothing is to be done. */
  readonly fix: string | null;
  /** The Run it is about, if it is about one. */
  readonly runId: RunId | null;
}

export interface PruneRequest {
  /** Milliseconds of the store's clock: trees that ended at this time or later stay. */
  readonly endedBefore: number;
  /** Trees at most; the trees of one thread go together, so the last thread may exceed it. */
  readonly limit: number;
  /** Only counts what would go. */
  readonly dryRun?: boolean;
}

/*
 * What an operator does to a store. None of it carries a fact of a Run (L1).
 *
 * O1 Limits are obeyed by claims and by the claims that ride in a commit. What is over a limit stays ready, and the next
 *    due Run that fits is taken. For a commit's own claims, older work is what fits once the lane's Run has let go.
 * O2 A tree is pruned whole, with its receipts, and together with the other trees on its threads: once every Run of
 *    them ended before the time given, nothing in an inbox is unread, no ticket is open and no cancel intent is
 *    undelivered. What workers did and which of them died before that time goes, too.
 * O3 A tree is erased whole, once every Run on its threads has ended and the rest of O2 holds; before, it is left alone.
 * O4 Positions of the log are never given twice, whatever was pruned, so a cursor stays good (L7).
 */
export interface StoreOperations {
  /** Replaces all limits of the tenant. */
  setLimits(tenant: TenantId, limits: RunningLimits): Promise<void>;
  getLimits(tenant: TenantId): Promise<RunningLimits>;
  countRunning(tenant: TenantId, rootRunId: RunId | null): Promise<RunningCounts>;
  /** Removes whole ended trees, the longest ended first, and leaves a tombstone for each. */
  prune(tenant: TenantId, request: PruneRequest): Promise<{ readonly trees: number; readonly runs: number }>;
  /** The latest first. */
  listTombstones(tenant: TenantId, limit: number): Promise<readonly Tombstone[]>;
  /**
   * Replaces the bodies of every log entry, envelope and ticket and the summaries of a person's trees by erasure marks,
   * which keep their digests, and forgets whose they were (L2). Counts Runs: erased, and left alone because their tree or
   * thread still lives.
   */
  eraseUser(tenant: TenantId, user: string): Promise<{ readonly erased: number; readonly stillLive: number }>;
  /** Removes everything of a tenant, workers, publications and tombstones included; refused while a Run of it runs. */
  eraseTenant(
    tenant: TenantId,
  ): Promise<
    | { readonly kind: "erased"; readonly runs: number }
    | { readonly kind: "refused"; readonly running: number }
  >;
  /** Settings, sizes, the oldest lease, the oldest due Run that nobody has claimed, and so on. */
  inspect(tenant: TenantId): Promise<readonly Finding[]>;
}
