import type { DelegationId, PublicationRef, RunId, TenantId, TicketId } from "../../domain/id.ts";
import type {
  DelegationRow,
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
  WorkerRow,
} from "../../runtime/ports/store.ts";
import type { PostgresValue } from "../../sql/postgres-driver.ts";
import type { Database } from "./database.ts";
import type { StatementName } from "./statements.ts";

/** How long a page of a tree waits for transactions that may still commit before its last row: many times one of ours. */
const SETTLE_MS = 250;
const SETTLE_WAIT_MS = 2;

/** The port's reads, each one statement on committed rows. */
export class Reader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async run(tenant: TenantId, runId: RunId): Promise<RunRow | null> {
    return (await this.#rows<RunRow>("run", [tenant, runId]))[0] ?? null;
  }

  runs(tenant: TenantId, filter: RunFilter): Promise<readonly RunRow[]> {
    const { states, rootsOnly, rootRunId, parentRunId, threadId, limit, offset } = filter;
    const oldest = filter.order === "oldest";
    const page = [limit, offset ?? 0];
    const values: PostgresValue[] = [tenant, states ?? null, rootsOnly === true];
    const sorted = [...values, oldest ? 1 : -1, ...page];
    if (parentRunId !== undefined) {
      return this.#rows("runs_of_parent", [...sorted, parentRunId, rootRunId ?? null, threadId ?? null]);
    }
    if (threadId !== undefined) return this.#rows("runs_of_thread", [...sorted, threadId, rootRunId ?? null]);
    if (rootRunId !== undefined) return this.#rows("runs_of_tree", [...sorted, rootRunId]);
    if (states !== undefined && !states.includes("ended")) {
      return this.#rows(oldest ? "runs_live_oldest" : "runs_live_newest", [...values, ...page]);
    }
    return this.#rows(oldest ? "runs_oldest" : "runs_newest", [...values, ...page]);
  }

  async counts(tenant: TenantId): Promise<Readonly<Record<RowState, number>>> {
    const counts = { created: 0, ready: 0, running: 0, waiting: 0, awaiting: 0, paused: 0, ended: 0 };
    type Count = { readonly state: RowState | "all"; readonly count: number };
    for (const { state, count } of await this.#rows<Count>("count_runs", [tenant])) {
      if (state === "all") counts.ended += count;
      else {
        counts[state] = count;
        counts.ended -= count;
      }
    }
    return counts;
  }

  log(tenant: TenantId, scope: LogScope, afterSeq: number, limit: number): Promise<readonly LogRow[]> {
    if ("runId" in scope) return this.#rows("log_of_run", [tenant, scope.runId, afterSeq, limit]);
    if ("threadId" in scope) return this.#rows("log_of_thread", [tenant, scope.threadId, afterSeq, limit]);
    if ("rootRunId" in scope) return this.#settled("log_of_tree", [tenant, scope.rootRunId, afterSeq, limit]);
    return this.#settled("log_of_all", [tenant, null, afterSeq, limit]);
  }

  /**
   * A Run's own entries are numbered under its row's lock, in the order in which they are committed. Those of several
   * Runs are not: a transaction that was open when a page was read may still commit entries before its last one. So the
   * page waits until all of those have ended and is read again up to where it ended; whoever begins later numbers higher.
   * A transaction of somebody else's that stays open does not hold it up for long.
   */
  async #settled(name: StatementName, values: PostgresValue[]): Promise<readonly LogRow[]> {
    const last = (await this.#rows<LogRow>(name, [...values, null])).at(-1);
    if (last === undefined) return [];
    const [begun] = await this.#rows<{ readonly mine: string }>("begin_reading", []);
    const deadline = performance.now() + SETTLE_MS;
    for (;;) {
      const [horizon] = await this.#rows<{ readonly xmin: string }>("horizon", []);
      const isOver = BigInt(horizon?.xmin ?? 0) > BigInt(begun?.mine ?? 0);
      if (isOver || performance.now() > deadline) return this.#rows<LogRow>(name, [...values, last.seq]);
      await new Promise((resolve) => setTimeout(resolve, SETTLE_WAIT_MS));
    }
  }

  async pending(tenant: TenantId, runId: RunId, afterSignal: number): Promise<Pending> {
    type Found = {
      readonly signalSeq: number;
      readonly controlSeq: number;
      readonly signals: string | null;
      readonly inbox: string | null;
    };
    const [found] = await this.#rows<Found>("pending", [tenant, runId, afterSignal]);
    if (found === undefined) return { signalSeq: 0, controlSeq: 0, signals: [], inbox: [] };
    const { signalSeq, controlSeq, signals, inbox } = found;
    return {
      signalSeq,
      controlSeq,
      signals: signals === null ? [] : (JSON.parse(signals) as LogRow[]),
      inbox: inbox === null ? [] : (JSON.parse(inbox) as InboxRow[]),
    };
  }

  inbox(tenant: TenantId, parentRunId: RunId): Promise<readonly InboxRow[]> {
    return this.#rows("inbox", [tenant, parentRunId]);
  }

  async ticket(tenant: TenantId, ticketId: TicketId): Promise<TicketRow | null> {
    return (await this.#rows<TicketRow>("ticket", [tenant, ticketId]))[0] ?? null;
  }

  tickets(tenant: TenantId, filter: Parameters<Store["listTickets"]>[1]): Promise<readonly TicketRow[]> {
    const { runId, rootRunId, open, limit } = filter;
    const values: PostgresValue[] = [tenant, open ?? null, limit];
    if (runId !== undefined) return this.#rows("tickets_of_run", [...values, runId, rootRunId ?? null]);
    if (rootRunId !== undefined) return this.#rows("tickets_of_tree", [...values, rootRunId]);
    return open === true ? this.#rows("tickets_open", [tenant, limit]) : this.#rows("tickets", values);
  }

  async delegation(tenant: TenantId, delegationId: DelegationId): Promise<DelegationRow | null> {
    return (await this.#rows<DelegationRow>("delegation", [tenant, delegationId]))[0] ?? null;
  }

  delegations(
    tenant: TenantId,
    filter: Parameters<Store["listDelegations"]>[1],
  ): Promise<readonly DelegationRow[]> {
    const { parentRunId: parent, rootRunId: root, limit } = filter;
    if (parent !== undefined)
      return this.#rows("delegations_of_parent", [tenant, parent, limit, root ?? null]);
    if (root !== undefined) return this.#rows("delegations_of_tree", [tenant, root, limit]);
    return this.#rows("delegations", [tenant, limit]);
  }

  pendingIntents(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#rows("pending_intents", [tenant, limit]);
  }

  orphaned(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]> {
    return this.#rows("orphaned_delegations", [tenant, limit]);
  }

  workers(tenant: TenantId): Promise<readonly WorkerRow[]> {
    return this.#rows("workers", [tenant]);
  }

  async publication(tenant: TenantId, ref: PublicationRef): Promise<PublicationRow | null> {
    return (await this.#rows<PublicationRow>("publication", [tenant, ref]))[0] ?? null;
  }

  async headPublication(tenant: TenantId, name: string): Promise<PublicationRow | null> {
    return (await this.#rows<PublicationRow>("head_publication", [tenant, name]))[0] ?? null;
  }

  publications(tenant: TenantId): Promise<readonly PublicationRow[]> {
    return this.#rows("publications", [tenant]);
  }

  async nextDueAt(tenant: TenantId): Promise<number | null> {
    type Due = { readonly dueAt: number | null };
    return (await this.#rows<Due>("next_due", [tenant]))[0]?.dueAt ?? null;
  }

  #rows<Row>(name: StatementName, values: PostgresValue[]): Promise<readonly Row[]> {
    return this.#database.call<Row>(name, values);
  }
}
