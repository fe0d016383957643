import { randomUUID } from "node:crypto";
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
import { type CallFailure, GroupCaller } from "../../sql/group-caller.ts";
import { type PostgresPool, postgresTrouble } from "../../sql/postgres-driver.ts";
import { encodeGroup, type GroupAnswer, groupKeys } from "./commit-batch.ts";
import type { Database } from "./database.ts";
import { DatabaseClock } from "./database-clock.ts";
import { readFeed } from "./feed.ts";
import { NotificationListener } from "./notification-listener.ts";
import { openDatabase } from "./open-database.ts";
import { PostgresOperations } from "./operations.ts";
import { Reader } from "./reader.ts";
import { closedError, storeError } from "./store-error.ts";
import { Wakes } from "./wakes.ts";

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:5432/database`; may lead through a transaction-mode pooler. */
  readonly connectionString?: string;
  /** A pool of the package `pg`, in place of `connectionString`. It is not ended when the store is closed. */
  readonly pool?: PostgresPool;
  /** The schema that holds the tables, made if it is not there. Default `errand`. */
  readonly schema?: string;
  /**
   * Where to listen for other processes' commits: a connection string that leads past any pooler, or false to rely on
   * polling alone. Default: `connectionString`.
   */
  readonly listen?: string | false;
  /** Most connections of the pool that `connectionString` opens. Default 10. */
  readonly maxConnections?: number;
  /** Whether statements may be prepared by name; false for a pooler that does not know of them. Default true. */
  readonly preparedStatements?: boolean;
  /** How long an answer, or a connection, is waited for before the connection is given up. Default 30,000. */
  readonly callTimeoutMs?: number;
  /** Whether to bring the schema to this release when it is older. Default true. */
  readonly migrate?: boolean;
  /** For tests: takes the place of the database's clock in every time that is compared or written. */
  readonly clock?: Pick<Clock, "now">;
}

/** Most commits in one call. */
const MAX_GROUP = 64;

/** A tenant's calls under way at once, and the fewest commits that are worth a second one: a call has its price. */
const IN_FLIGHT = 2;
const MIN_SHARE = 16;

/** How long a commit is tried again after deadlocks and lock timeouts. */
const PATIENCE_MS = 10_000;

/** Opens the store of a fleet: one PostgreSQL database, 14 or newer, which many processes on many hosts share. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { schema = "errand", connectionString, clock } = options;
  const { database, driver } = await openDatabase({
    connectionString,
    pool: options.pool,
    schema,
    maxConnections: options.maxConnections ?? 10,
    preparedStatements: options.preparedStatements ?? true,
    callTimeoutMs: options.callTimeoutMs ?? 30_000,
    migrate: options.migrate ?? true,
  });
  try {
    const time = clock === undefined ? await DatabaseClock.read(database) : null;
    const store = new PostgresStore(database, time, clock ?? null);
    const { listen = connectionString ?? false } = options;
    if (listen !== false) await store.listen(() => driver.openListener(listen));
    return store;
  } catch (error) {
    await database.end();
    throw storeError(error);
  }
}

/*
 * P1 Every call is one statement, so one transaction and one round trip; commits share theirs with the others of their
 *    tenant that are ready at the same time.
 * P2 Every time is the database's, read after locks are held, unless a test gives its own.
 * P3 Nothing depends on a session or on a notification.
 */
class PostgresStore implements Store {
  readonly capabilities = { kind: "postgres", durable: true, multiProcess: true, oneHost: false } as const;
  readonly operations: PostgresOperations;
  readonly #database: Database;
  readonly #reader: Reader;
  readonly #time: DatabaseClock | null;
  readonly #clock: Pick<Clock, "now"> | null;
  readonly #wakes: Wakes;
  readonly #channel: string;
  readonly #groups = new Map<TenantId, GroupCaller<Commit, CommitOutcome>>();
  #listener: NotificationListener | null = null;
  #closing: Promise<void> | null = null;

  constructor(database: Database, time: DatabaseClock | null, clock: Pick<Clock, "now"> | null) {
    this.#database = database;
    this.#reader = new Reader(database);
    this.#time = time;
    this.#clock = clock;
    this.#channel = `${database.schema}_wakes`;
    this.#wakes = new Wakes(randomUUID(), (payload) => database.send("notify", [this.#channel, payload]));
    this.operations = new PostgresOperations({
      database,
      now: () => this.now(),
      given: () => this.#given(),
      stirred: (tenant) => this.#wakes.tell(tenant, [{ tenant, runId: null, kind: "ready" }]),
    });
  }

  async listen(open: ConstructorParameters<typeof NotificationListener>[0]["open"]): Promise<void> {
    this.#listener = new NotificationListener({
      open,
      channel: this.#channel,
      onPayload: (payload) => this.#wakes.receive(payload),
      onMissed: () => this.#wakes.missed(),
    });
    await this.#listener.start();
  }

  now(): number {
    return this.#clock?.now() ?? this.#time?.now() ?? 0;
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    if (this.#closing !== null) return Promise.reject(closedError());
    const { tenant } = commit;
    this.#wakes.know(tenant);
    let group = this.#groups.get(tenant);
    if (group === undefined) {
      group = this.#openGroup(tenant);
      this.#groups.set(tenant, group);
    }
    return group.submit(commit);
  }

  async registerWorker(tenant: TenantId, worker: Parameters<Store["registerWorker"]>[1]): Promise<void> {
    const { incarnation, pid, name, host, publications } = worker;
    this.#wakes.know(tenant);
    const values = [tenant, incarnation, pid, name, host, publications, this.#given()];
    await this.#database.call("register_worker", values);
  }

  async heartbeat(
    tenant: TenantId,
    incarnation: IncarnationId,
  ): Promise<{ readonly alive: boolean; readonly held: readonly ClaimedRun[] }> {
    type Held = ClaimedRun | { readonly runId: null };
    const rows = await this.#database.call<Held>("heartbeat", [tenant, incarnation, this.#given()]);
    const held = rows.filter((row): row is ClaimedRun => row.runId !== null);
    return { alive: rows.length > 0, held };
  }

  async deregisterWorker(tenant: TenantId, incarnation: IncarnationId): Promise<void> {
    await this.#endWorkers(tenant, incarnation, null);
  }

  reapWorkers(tenant: TenantId, leaseMs: number): Promise<readonly IncarnationId[]> {
    return this.#endWorkers(tenant, null, leaseMs);
  }

  listWorkers(tenant: TenantId): Promise<readonly WorkerRow[]> {
    return this.#reader.workers(tenant);
  }

  claim(tenant: TenantId, request: Parameters<Store["claim"]>[1]): Promise<readonly ClaimedRun[]> {
    this.#wakes.know(tenant);
    const { incarnation, carries, limit } = request;
    return this.#database.call("claim_runs", [tenant, incarnation, [...carries], limit, this.#given()]);
  }

  async release(
    tenant: TenantId,
    incarnation: IncarnationId,
    runs: Parameters<Store["release"]>[2],
  ): Promise<void> {
    const ids = runs.map((run) => run.runId);
    const epochs = runs.map((run) => run.epoch);
    const values = [tenant, incarnation, ids, epochs, this.#given()];
    const freed = await this.#database.call<{ readonly runId: RunId }>("release_runs", values);
    this.#tellReady(
      tenant,
      freed.map((row) => row.runId),
    );
  }

  nextDueAt(tenant: TenantId): Promise<number | null> {
    return this.#reader.nextDueAt(tenant);
  }

  getRun(tenant: TenantId, runId: RunId): Promise<RunRow | null> {
    return this.#reader.run(tenant, runId);
  }

  listRuns(tenant: TenantId, filter: RunFilter): Promise<readonly RunRow[]> {
    return this.#reader.runs(tenant, filter);
  }

  countRuns(tenant: TenantId): Promise<Readonly<Record<RowState, number>>> {
    return this.#reader.counts(tenant);
  }

  readLog(tenant: TenantId, scope: LogScope, afterSeq: number, limit: number): Promise<readonly LogRow[]> {
    return this.#reader.log(tenant, scope, afterSeq, limit);
  }

  readPending(tenant: TenantId, runId: RunId, afterSignal: number): Promise<Pending> {
    return this.#reader.pending(tenant, runId, afterSignal);
  }

  getTicket(tenant: TenantId, ticketId: TicketId): Promise<TicketRow | null> {
    return this.#reader.ticket(tenant, ticketId);
  }

  listTickets(tenant: TenantId, filter: Parameters<Store["listTickets"]>[1]): Promise<readonly TicketRow[]> {
    return this.#reader.tickets(tenant, filter);
  }

  getDelegation(tenant: TenantId, delegationId: DelegationId): Promise<DelegationRow | null> {
    return this.#reader.delegation(tenant, delegationId);
  }

  listDelegations(
    tenant: TenantId,
    filter: Parameters<Store["listDelegations"]>[1],
  ): Promise<readonly DelegationRow[]> {
    return this.#reader.delegations(tenant, filter);
  }

  listInbox(tenant: TenantId, parentRunId: RunId): Promise<readonly InboxRow[]> {
    return this.#reader.inbox(tenant, parentRunId);
  }

  pendingIntents(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#reader.pendingIntents(tenant, limit);
  }

  orphanedDelegations(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#reader.orphaned(tenant, limit);
  }

  async putPublication(tenant: TenantId, publication: Omit<PublicationRow, "publishedAt">): Promise<void> {
    const { ref, name, body } = publication;
    await this.#database.call("put_publication", [tenant, ref, name, body, this.#given()]);
  }

  getPublication(tenant: TenantId, ref: PublicationRef): Promise<PublicationRow | null> {
    return this.#reader.publication(tenant, ref);
  }

  headPublication(tenant: TenantId, name: string): Promise<PublicationRow | null> {
    return this.#reader.headPublication(tenant, name);
  }

  listPublications(tenant: TenantId): Promise<readonly PublicationRow[]> {
    return this.#reader.publications(tenant);
  }

  readFeed(tenant: TenantId, feed: FeedName, after: string | null, limit: number): Promise<FeedPage> {
    return readFeed(this.#database, tenant, feed, after, limit);
  }

  onWake(listener: (hint: WakeHint) => void): () => void {
    if (this.#closing !== null) throw closedError();
    return this.#wakes.listen(listener);
  }

  /** Writes what is queued, then lets go of the connections that the store has opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#database.refuse();
    this.#wakes.close();
    await Promise.all([...this.#groups.values()].map((group) => group.drain()));
    await this.#listener?.close();
    await this.#database.end();
  }

  #openGroup(tenant: TenantId): GroupCaller<Commit, CommitOutcome> {
    return new GroupCaller<Commit, CommitOutcome>({
      call: (commits) => this.#callGroup(tenant, commits),
      keys: groupKeys,
      classify,
      explain: storeError,
      maxGroup: MAX_GROUP,
      inFlight: IN_FLIGHT,
      minShare: MIN_SHARE,
      patienceMs: PATIENCE_MS,
      onIdle: () => this.#groups.delete(tenant),
    });
  }

  async #callGroup(tenant: TenantId, commits: readonly Commit[]): Promise<readonly CommitOutcome[]> {
    const values = encodeGroup(commits, this.#given());
    const [row] = await this.#database.send<{ readonly answer: string }>("commit_group", values);
    const answer = JSON.parse(row?.answer ?? "") as GroupAnswer;
    queueMicrotask(() => this.#tellGroup(tenant, commits, answer));
    return answer.out;
  }

  #tellGroup(tenant: TenantId, commits: readonly Commit[], { out, ready, signal }: GroupAnswer): void {
    const hints: WakeHint[] = [];
    for (const runId of ready) hints.push({ tenant, runId: runId as RunId, kind: "ready" });
    for (const runId of signal) hints.push({ tenant, runId: runId as RunId, kind: "signal" });
    for (const [at, { kind }] of out.entries()) {
      if (kind !== "committed") continue;
      if (hints.at(-1)?.kind !== "log") hints.push({ tenant, runId: null, kind: "log" });
      const lane = commits[at]?.lane;
      if (lane?.next.kind === "end") hints.push({ tenant, runId: lane.runId, kind: "ended" });
    }
    this.#wakes.tell(tenant, hints);
  }

  async #endWorkers(
    tenant: TenantId,
    incarnation: IncarnationId | null,
    silentMs: number | null,
  ): Promise<readonly IncarnationId[]> {
    type Ended = { readonly incarnation: IncarnationId; readonly runId: RunId | null };
    const values = [tenant, incarnation, silentMs, this.#given()];
    const rows = await this.#database.call<Ended>("end_workers", values);
    this.#tellReady(
      tenant,
      rows.flatMap(({ runId }) => (runId === null ? [] : [runId])),
    );
    return rows.filter(({ runId }) => runId === null).map((row) => row.incarnation);
  }

  #tellReady(tenant: TenantId, runs: readonly RunId[]): void {
    this.#wakes.tell(
      tenant,
      runs.map((runId) => ({ tenant, runId, kind: "ready" as const })),
    );
  }

  #given(): number | null {
    return this.#clock?.now() ?? null;
  }
}

function classify(error: unknown): CallFailure {
  switch (postgresTrouble(error)) {
    case "passing":
      return "passing";
    case "lost":
      return "unknown";
    default:
      return "poison";
  }
}
