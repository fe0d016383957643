import { hostname } from "node:os";
import { ErrandError } from "../../domain/errand-error.ts";
import type {
  DelegationId,
  IncarnationId,
  PublicationRef,
  RunId,
  TenantId,
  TicketId,
} from "../../domain/id.ts";
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
import { GroupWriter } from "../../sql/group-writer.ts";
import { type SqlDatabase, sqliteTrouble } from "../../sql/sqlite-driver.ts";
import { setTimeout as wait } from "node:timers/promises";
import { claim, release } from "./claim.ts";
import { applyCommit } from "./commit.ts";
import { readFeed } from "./feed.ts";
import { type DatabaseOptions, openDatabase } from "./open-database.ts";
import { prepareReads, Reader, type Reads } from "./reader.ts";
import { SqliteOperations } from "./sqlite-operations.ts";
import { prepareAll, SQL } from "./statements.ts";
import { storeError } from "./store-error.ts";
import { Transaction } from "./transaction.ts";
import { Wakes } from "./wakes.ts";
import { deregisterWorker, heartbeat, reapWorkers, registerWorker } from "./worker.ts";

export interface SqliteStoreOptions {
  /** Takes the place of the machine's clock in every time that the store compares or writes. */
  readonly clock?: Pick<Clock, "now">;
  /**
   * `full` (the default) syncs every commit to the disk before it is acknowledged. `normal` does not: after a power cut
   * or a crash of the operating system the last commits may be gone although they were acknowledged, so a tool may run
   * twice and a delegation may be started anew. A crash of the process alone loses nothing under either.
   */
  readonly durability?: "full" | "normal";
  /** How often to look for other processes' commits while somebody listens for wakes; 0 never looks. Default 100. */
  readonly pollMs?: number;
  /** How long a call waits for another process's lock before it fails with STORE_BUSY. Default 10 000. */
  readonly busyTimeoutMs?: number;
}

/** Most commits in one transaction: a group of this size holds the event loop for some milliseconds. */
const MAX_GROUP = 128;

const READ_RETRY_MS = 5;

/** Opens the embedded store: one SQLite file, made if it is not there, which several processes of one host may share. */
export async function createSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<Store> {
  return openSqliteStore(path, options);
}

/** @internal Also takes the test seam of the connection. */
export async function openSqliteStore(
  path: string,
  options: SqliteStoreOptions & Pick<DatabaseOptions, "wrap">,
): Promise<Store> {
  const { clock = { now: () => Date.now() }, pollMs = 100 } = options;
  const { durability = "full", busyTimeoutMs = 10_000, wrap } = options;
  const db = await openDatabase(path, { durability, busyTimeoutMs, wrap });
  try {
    return new SqliteStore(path, db, clock, pollMs, busyTimeoutMs);
  } catch (error) {
    db.close();
    throw storeError(path, error);
  }
}

/*
 * Q1 Whatever writes goes through one queue and is written in groups, each one transaction (see GroupWriter).
 * Q2 Reads see committed rows and open no transaction; a call that would change nothing does not write at all.
 * Q3 Every transaction has one time, read after the lock is held.
 */
class SqliteStore implements Store {
  readonly capabilities = { kind: "sqlite", durable: true, multiProcess: true, oneHost: true } as const;
  readonly operations: SqliteOperations;
  readonly #path: string;
  readonly #db: SqlDatabase;
  readonly #clock: Pick<Clock, "now">;
  readonly #busyTimeoutMs: number;
  readonly #tx: Transaction;
  readonly #writer: GroupWriter;
  readonly #reads: Reads;
  readonly #reader: Reader;
  readonly #wakes: Wakes;
  readonly #storeId: string;
  #closing: Promise<void> | null = null;

  constructor(
    path: string,
    db: SqlDatabase,
    clock: Pick<Clock, "now">,
    pollMs: number,
    busyTimeoutMs: number,
  ) {
    this.#path = path;
    this.#db = db;
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
    const tx = new Transaction(prepareAll(db, SQL), clock);
    this.#tx = tx;
    const reads = prepareReads(db);
    this.#reads = reads;
    this.#reader = new Reader(reads);
    this.#wakes = new Wakes(
      pollMs,
      () => (tx.sql.dataVersion.get() as { readonly data_version: number }).data_version,
    );
    this.#storeId = (reads.storeId.get() as { readonly value: string }).value;
    this.#writer = new GroupWriter(db, {
      busyTimeoutMs,
      maxGroup: MAX_GROUP,
      onBegin: () => tx.begin(),
      onCommit: () => this.#wakes.tell(tx.takeHints()),
      onRollback: () => tx.rolledBack(),
      explain: (error) => this.#explain(error),
    });
    this.operations = new SqliteOperations({
      path,
      db,
      tx,
      read: (tenant, read) => this.#read(tenant, read),
      write: (tenant, apply) => this.#write(tenant, apply),
    });
  }

  now(): number {
    return this.#clock.now();
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    return this.#write(commit.tenant, () => applyCommit(this.#tx, commit));
  }

  registerWorker(tenant: TenantId, worker: Parameters<Store["registerWorker"]>[1]): Promise<void> {
    return this.#write(tenant, () => registerWorker(this.#tx, tenant, worker));
  }

  heartbeat(
    tenant: TenantId,
    incarnation: IncarnationId,
  ): Promise<{ readonly alive: boolean; readonly held: readonly ClaimedRun[] }> {
    return this.#write(tenant, () => heartbeat(this.#tx, tenant, incarnation));
  }

  deregisterWorker(tenant: TenantId, incarnation: IncarnationId): Promise<void> {
    return this.#write(tenant, () => deregisterWorker(this.#tx, tenant, incarnation));
  }

  async reapWorkers(tenant: TenantId, leaseMs: number): Promise<readonly IncarnationId[]> {
    const expired = await this.#read(tenant, () =>
      this.#tx.sql.expiredWorkers.all(tenant, this.now() - leaseMs),
    );
    if (expired.length === 0) return [];
    return this.#write(tenant, () => reapWorkers(this.#tx, tenant, leaseMs));
  }

  listWorkers(tenant: TenantId): Promise<readonly WorkerRow[]> {
    return this.#read(tenant, () => this.#reader.workers(tenant));
  }

  async claim(tenant: TenantId, request: Parameters<Store["claim"]>[1]): Promise<readonly ClaimedRun[]> {
    const isDue = await this.#read(tenant, () => this.#tx.sql.anyDue.get(tenant, this.now()) !== undefined);
    return isDue ? this.#write(tenant, () => claim(this.#tx, tenant, request)) : [];
  }

  async release(
    tenant: TenantId,
    incarnation: IncarnationId,
    runs: Parameters<Store["release"]>[2],
  ): Promise<void> {
    await this.#write(tenant, () => release(this.#tx, tenant, incarnation, runs));
  }

  nextDueAt(tenant: TenantId): Promise<number | null> {
    return this.#read(
      tenant,
      () => (this.#tx.sql.nextDue.get(tenant) as { readonly dueAt: number | null }).dueAt,
    );
  }

  getRun(tenant: TenantId, runId: RunId): Promise<RunRow | null> {
    return this.#read(tenant, () => this.#reader.run(tenant, runId));
  }

  listRuns(tenant: TenantId, filter: RunFilter): Promise<readonly RunRow[]> {
    return this.#read(tenant, () => this.#reader.runs(tenant, filter));
  }

  countRuns(tenant: TenantId): Promise<Readonly<Record<RowState, number>>> {
    return this.#read(tenant, () => this.#reader.counts(tenant));
  }

  readLog(tenant: TenantId, scope: LogScope, afterSeq: number, limit: number): Promise<readonly LogRow[]> {
    return this.#read(tenant, () => this.#reader.log(tenant, scope, afterSeq, limit));
  }

  readPending(tenant: TenantId, runId: RunId, afterSignal: number): Promise<Pending> {
    return this.#read(tenant, () => this.#reader.pending(tenant, runId, afterSignal));
  }

  getTicket(tenant: TenantId, ticketId: TicketId): Promise<TicketRow | null> {
    return this.#read(tenant, () => this.#reader.ticket(tenant, ticketId));
  }

  listTickets(tenant: TenantId, filter: Parameters<Store["listTickets"]>[1]): Promise<readonly TicketRow[]> {
    return this.#read(tenant, () => this.#reader.tickets(tenant, filter));
  }

  getDelegation(tenant: TenantId, delegationId: DelegationId): Promise<DelegationRow | null> {
    return this.#read(tenant, () => this.#reader.delegation(tenant, delegationId));
  }

  listDelegations(
    tenant: TenantId,
    filter: Parameters<Store["listDelegations"]>[1],
  ): Promise<readonly DelegationRow[]> {
    return this.#read(tenant, () => this.#reader.delegations(tenant, filter));
  }

  listInbox(tenant: TenantId, parentRunId: RunId): Promise<readonly InboxRow[]> {
    return this.#read(tenant, () => this.#reader.inbox(tenant, parentRunId));
  }

  pendingIntents(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#read(tenant, () => this.#reader.pendingIntents(tenant, limit));
  }

  orphanedDelegations(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#read(tenant, () => this.#reader.orphaned(tenant, limit));
  }

  async putPublication(tenant: TenantId, publication: Omit<PublicationRow, "publishedAt">): Promise<void> {
    const { ref, name, body } = publication;
    await this.#write(tenant, () =>
      this.#tx.sql.insertPublication.run(tenant, ref, name, this.#tx.now, body),
    );
  }

  getPublication(tenant: TenantId, ref: PublicationRef): Promise<PublicationRow | null> {
    return this.#read(tenant, () => this.#reader.publication(tenant, ref));
  }

  headPublication(tenant: TenantId, name: string): Promise<PublicationRow | null> {
    return this.#read(tenant, () => this.#reader.headPublication(tenant, name));
  }

  listPublications(tenant: TenantId): Promise<readonly PublicationRow[]> {
    return this.#read(tenant, () => this.#reader.publications(tenant));
  }

  readFeed(tenant: TenantId, feed: FeedName, after: string | null, limit: number): Promise<FeedPage> {
    return this.#read(tenant, () => readFeed(this.#reads, this.#storeId, tenant, feed, after, limit));
  }

  onWake(listener: (hint: WakeHint) => void): () => void {
    if (this.#closing !== null) throw this.#closedError();
    return this.#wakes.listen(listener);
  }

  /** Writes what is queued, takes the write-ahead log into the file, and lets go of it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#wakes.close();
    await this.#writer.drain();
    try {
      this.#db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // Another process is at work on the file, or the disk is full: the log stays and is read at the next opening.
      if (sqliteTrouble(error) === null) throw error;
    }
    this.#db.close();
  }

  #write<T>(tenant: TenantId, apply: () => T): Promise<T> {
    if (this.#closing !== null) return Promise.reject(this.#closedError());
    this.#wakes.know(tenant);
    return this.#writer.submit(apply);
  }

  async #read<T>(tenant: TenantId, read: () => T): Promise<T> {
    this.#wakes.know(tenant);
    const deadline = performance.now() + this.#busyTimeoutMs;
    for (;;) {
      if (this.#closing !== null) throw this.#closedError();
      try {
        return read();
      } catch (error) {
        // Readers wait for a writer only while the file is being recovered or closed by another process.
        if (sqliteTrouble(error) !== "busy" || performance.now() > deadline) throw this.#explain(error);
      }
      await wait(READ_RETRY_MS);
    }
  }

  #explain(error: unknown): ErrandError {
    return storeError(this.#path, error, () => this.#workerPids());
  }

  #workerPids(): readonly number[] {
    const rows = this.#reads.pids.all(hostname()) as { readonly pid: number }[];
    return rows.map((row) => row.pid).filter((pid) => pid !== process.pid);
  }

  #closedError(): ErrandError {
    return new ErrandError(
      "STORE_CLOSED",
      `The store on ${JSON.stringify(this.#path)} has been closed.`,
      "Open the file again with createSqliteStore().",
      { details: { path: this.#path } },
    );
  }
}
