import type { RunId, TenantId } from "../../domain/id.ts";

/** How many Runs may run at the same time; null is no limit. Kept in the store, so that every worker obeys the same. */
export interface RunningLimits {
  readonly tenant: number | null;
  /** Of one tree. */
  readonly tree: number | null;
  /** By agent name. */
  readonly agents: Readonly<Record<string, number>>;
}

/** What is left of a tree whose rows were pruned (L2). */
export interface Tombstone {
  readonly tenant: TenantId;
  readonly rootRunId: RunId;
  readonly runs: number;
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
}

/*
 * What an operator does to a store. None of it carries a fact of a Run (L1), and none of it touches what is open: a tree
 * is pruned whole, once every Run of it and of the other trees on its threads has ended, nothing in an inbox is unread and
 * no cancel intent is undelivered.
 */
export interface StoreOperations {
  setLimits(tenant: TenantId, limits: RunningLimits): Promise<void>;
  getLimits(tenant: TenantId): Promise<RunningLimits>;
  /** Removes whole ended trees, the longest ended first, and leaves a tombstone for each. */
  prune(
    tenant: TenantId,
    request: { readonly endedBefore: number; readonly limit: number },
  ): Promise<{ readonly trees: number; readonly runs: number }>;
  listTombstones(tenant: TenantId, limit: number): Promise<readonly Tombstone[]>;
  /**
   * Replaces the bodies of every log entry, envelope, ticket and summary of a person's ended trees by an erasure mark and
   * keeps their digests, so that `verify` still accepts the log (L2). Returns how many Runs were erased, and how many of
   * the person's Runs still live and were left alone.
   */
  eraseUser(tenant: TenantId, user: string): Promise<{ readonly erased: number; readonly stillLive: number }>;
  /** Removes everything of a tenant. Refused while one of its Runs is running. */
  eraseTenant(tenant: TenantId): Promise<{ readonly runs: number }>;
  /** Version, settings, sizes, the oldest lease, the oldest unclaimed Run and so on. */
  inspect(tenant: TenantId): Promise<readonly Finding[]>;
}
