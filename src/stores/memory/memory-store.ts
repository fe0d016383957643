import { randomUUID } from "node:crypto";
import { ErrandError } from "../../domain/errand-error.ts";
import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type {
  ClaimedRun,
  Commit,
  CommitOutcome,
  DelegationRow,
  FeedName,
  FeedPage,
  InboxRow,
  LogRow,
  LogScope,
  Pending,
  PublicationRow,
  RowState,
  RunFilter,
  RunRow,
  Store,
  TicketRow,
  WakeHint,
  WorkerRow,
} from "../../runtime/ports/store.ts";
import { guard } from "./commit-guard.ts";
import { CommitWriter, type Stir } from "./commit-writer.ts";
import { claimedRun, type RunEntry } from "./run-table.ts";
import { MemoryOperations } from "./memory-operations.ts";
import { type Sequence, TenantTables } from "./tenant-tables.ts";
import { WakeHub } from "./wake-hub.ts";

/**
 * A store in this process's memory: the executable specification of the port, and what tests run on. Nothing survives it.
 *
 * M1 Every call does its work before it returns its promise, so calls never interleave: each is one transaction.
 * M2 No commit, claim or heartbeat looks at more rows than it touches, however many Runs have ended or are parked.
 * M3 What comes in and what goes out is copied; nobody outside holds a row of the tables.
 */
export function createMemoryStore(options: { readonly clock?: Pick<Clock, "now"> } = {}): Store {
  return new MemoryStore(options.clock ?? { now: () => Date.now() });
}

class MemoryStore implements Store {
  readonly capabilities = { kind: "memory", durable: false, multiProcess: false, oneHost: true } as const;
  readonly operations: MemoryOperations;
  readonly #clock: Pick<Clock, "now">;
  readonly #storeId = randomUUID();
  readonly #tenants = new Map<TenantId, TenantTables>();
  readonly #wakes = new WakeHub();
  readonly #sequence: Sequence;
  #closed = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    let last = 0;
    this.#sequence = { next: () => ++last };
    this.operations = new MemoryOperations({
      now: () => this.now(),
      tables: (tenant) => this.#of(tenant),
      forget: (tenant) => {
        const before = this.#of(tenant);
        const fresh = new TenantTables(tenant, this.#storeId, this.#sequence);
        fresh.lifecycle.follow(before.lifecycle);
        fresh.operational.follow(before.operational);
        this.#tenants.set(tenant, fresh);
      },
      stirred: (tenant) => this.#wakes.tell([{ tenant, runId: null, kind: "ready" }]),
    });
  }

  now(): number {
    return this.#clock.now();
  }

  async commit(commit: Commit): Promise<CommitOutcome> {
    const tables = this.#of(commit.tenant);
    const now = this.now();
    const rejection = guard(tables, commit, now);
    if (rejection !== null) return rejection;
    const { receipt, stir } = new CommitWriter(tables, commit, now).write();
    this.#tellStir(commit.tenant, stir);
    const { tenant, lane } = commit;
    this.#wakes.tell([{ tenant, runId: null, kind: "log" }]);
    if (lane?.next.kind === "end") this.#wakes.tell([{ tenant, runId: lane.runId, kind: "ended" }]);
    if (lane !== null && lane.next.kind !== "hold" && tables.runs.room.isLimited) {
      this.#wakes.tell([{ tenant, runId: null, kind: "ready" }]);
    }
    return { kind: "committed", receipt };
  }

  async registerWorker(tenant: TenantId, worker: Parameters<Store["registerWorker"]>[1]): Promise<void> {
    const tables = this.#of(tenant);
    const now = this.now();
    if (tables.workers.register({ tenant, startedAt: now, ...worker })) {
      tables.tell("worker_started", worker.incarnation, now, null);
    }
  }

  async heartbeat(
    tenant: TenantId,
    incarnation: IncarnationId,
  ): Promise<{ readonly alive: boolean; readonly held: readonly ClaimedRun[] }> {
    const tables = this.#of(tenant);
    if (!tables.workers.beat(incarnation, this.now())) return { alive: false, held: [] };
    return { alive: true, held: tables.runs.held(incarnation).map(claimedRun) };
  }

  async deregisterWorker(tenant: TenantId, incarnation: IncarnationId): Promise<void> {
    const tables = this.#of(tenant);
    if (!tables.workers.end(incarnation)) return;
    this.#freeAll(tables, incarnation, "released");
    tables.tell("worker_stopped", incarnation, this.now(), null);
  }

  async reapWorkers(tenant: TenantId, leaseMs: number): Promise<readonly IncarnationId[]> {
    const tables = this.#of(tenant);
    const now = this.now();
    const silent = tables.workers.silentSince(now - leaseMs);
    for (const incarnation of silent) {
      tables.workers.end(incarnation);
      tables.tell("worker_dead", incarnation, now, null);
      this.#freeAll(tables, incarnation, "lease_lost");
    }
    return silent;
  }

  async listWorkers(tenant: TenantId): Promise<readonly WorkerRow[]> {
    return this.#of(tenant).workers.list();
  }

  async claim(
    tenant: TenantId,
    { incarnation, carries, limit }: Parameters<Store["claim"]>[1],
  ): Promise<readonly ClaimedRun[]> {
    const tables = this.#of(tenant);
    const claimed: ClaimedRun[] = [];
    if (!tables.workers.isAlive(incarnation)) return claimed;
    const now = this.now();
    while (claimed.length < limit) {
      const entry = tables.runs.queue.first(now, carries);
      if (entry === null) break;
      tables.runs.claim(entry, incarnation);
      const run = claimedRun(entry);
      tables.tell("claimed", incarnation, now, run);
      claimed.push(run);
    }
    return claimed;
  }

  async release(
    tenant: TenantId,
    incarnation: IncarnationId,
    runs: readonly { readonly runId: RunId; readonly epoch: number }[],
  ): Promise<void> {
    const tables = this.#of(tenant);
    const now = this.now();
    const freed: RunEntry[] = [];
    for (const { runId, epoch } of runs) {
      const entry = tables.runs.get(runId);
      if (entry?.row.claimedBy !== incarnation || entry.row.epoch !== epoch) continue;
      entry.row.fruitlessClaims = Math.max(0, entry.row.fruitlessClaims - 1);
      tables.runs.free(entry, now);
      tables.tell("released", incarnation, now, { runId, epoch });
      freed.push(entry);
    }
    this.#tellStir(tenant, { ready: freed, signalled: [] });
  }

  async nextDueAt(tenant: TenantId): Promise<number | null> {
    return this.#of(tenant).runs.queue.earliest();
  }

  async getRun(tenant: TenantId, runId: RunId): Promise<RunRow | null> {
    const entry = this.#of(tenant).runs.get(runId);
    return entry === undefined ? null : { ...entry.row };
  }

  async listRuns(tenant: TenantId, filter: RunFilter): Promise<readonly RunRow[]> {
    return this.#of(tenant).runs.list(filter);
  }

  async countRuns(tenant: TenantId): Promise<Readonly<Record<RowState, number>>> {
    return { ...this.#of(tenant).runs.counts };
  }

  async readLog(
    tenant: TenantId,
    scope: LogScope,
    afterSeq: number,
    limit: number,
  ): Promise<readonly LogRow[]> {
    return this.#of(tenant).log.read(scope, afterSeq, limit);
  }

  async readPending(tenant: TenantId, runId: RunId, afterSignal: number): Promise<Pending> {
    const tables = this.#of(tenant);
    const row = tables.runs.get(runId)?.row;
    return {
      signalSeq: row?.signalSeq ?? 0,
      controlSeq: row?.controlSeq ?? 0,
      signals: tables.log.signalsAfter(runId, afterSignal),
      inbox: tables.inbox.unread(runId),
    };
  }

  async getTicket(tenant: TenantId, ticketId: TicketRow["ticketId"]): Promise<TicketRow | null> {
    return this.#of(tenant).tickets.get(ticketId);
  }

  async listTickets(
    tenant: TenantId,
    filter: Parameters<Store["listTickets"]>[1],
  ): Promise<readonly TicketRow[]> {
    return this.#of(tenant).tickets.list(filter);
  }

  async getDelegation(
    tenant: TenantId,
    delegationId: DelegationRow["delegationId"],
  ): Promise<DelegationRow | null> {
    return this.#of(tenant).delegations.get(delegationId);
  }

  async listDelegations(
    tenant: TenantId,
    filter: Parameters<Store["listDelegations"]>[1],
  ): Promise<readonly DelegationRow[]> {
    return this.#of(tenant).delegations.list(filter);
  }

  async listInbox(tenant: TenantId, parentRunId: RunId): Promise<readonly InboxRow[]> {
    return this.#of(tenant).inbox.list(parentRunId);
  }

  async pendingIntents(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#of(tenant).delegations.pendingIntents(limit);
  }

  async orphanedDelegations(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    const { delegations, runs } = this.#of(tenant);
    return delegations.orphaned(limit, (parent) => {
      const entry = runs.get(parent);
      return entry !== undefined && entry.row.state !== "ended";
    });
  }

  async putPublication(tenant: TenantId, publication: Omit<PublicationRow, "publishedAt">): Promise<void> {
    this.#of(tenant).publications.put(publication, this.now());
  }

  async getPublication(tenant: TenantId, ref: PublicationRow["ref"]): Promise<PublicationRow | null> {
    return this.#of(tenant).publications.get(ref);
  }

  async headPublication(tenant: TenantId, name: string): Promise<PublicationRow | null> {
    return this.#of(tenant).publications.head(name);
  }

  async listPublications(tenant: TenantId): Promise<readonly PublicationRow[]> {
    return this.#of(tenant).publications.list();
  }

  async readFeed(tenant: TenantId, feed: FeedName, after: string | null, limit: number): Promise<FeedPage> {
    return this.#of(tenant)[feed].read(after, limit);
  }

  onWake(listener: (hint: WakeHint) => void): () => void {
    return this.#wakes.listen(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wakes.clear();
    this.#tenants.clear();
  }

  #of(tenant: TenantId): TenantTables {
    if (this.#closed) {
      throw new ErrandError("STORE_CLOSED", "This memory store has been closed.", "Open a new store.");
    }
    let tables = this.#tenants.get(tenant);
    if (tables === undefined) {
      tables = new TenantTables(tenant, this.#storeId, this.#sequence);
      this.#tenants.set(tenant, tables);
    }
    return tables;
  }

  #freeAll(tables: TenantTables, incarnation: IncarnationId, kind: "released" | "lease_lost"): void {
    const now = this.now();
    const held = tables.runs.held(incarnation);
    for (const entry of held) {
      tables.tell(kind, incarnation, now, { runId: entry.row.runId, epoch: entry.row.epoch });
      tables.runs.free(entry, now);
    }
    this.#tellStir(tables.tenant, { ready: held, signalled: [] });
  }

  #tellStir(tenant: TenantId, { ready, signalled }: Stir): void {
    this.#wakes.tell([
      ...ready.map(({ row }): WakeHint => ({ tenant, runId: row.runId, kind: "ready" })),
      ...signalled.map(({ row }): WakeHint => ({ tenant, runId: row.runId, kind: "signal" })),
    ]);
  }
}
