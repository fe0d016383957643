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
import type { SqlDatabase, SqlStatement, SqlValue } from "../../sql/sqlite-driver.ts";
import { READS } from "./reads.ts";
import { SQL, prepareAll } from "./statements.ts";

export type Reads = { readonly [Name in keyof typeof READS | "lastSeq"]: SqlStatement };

export function prepareReads(db: SqlDatabase): Reads {
  return prepareAll(db, { ...READS, lastSeq: SQL.lastSeq });
}

type Stored<Row, Flag extends keyof Row> = Omit<Row, Flag> & { readonly [F in Flag]: number };

/** The port's reads, each on committed rows, without a transaction. */
export class Reader {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  run(tenant: TenantId, runId: RunId): RunRow | null {
    const row = this.#reads.run.get(tenant, runId) as Stored<RunRow, "lane"> | undefined;
    return row === undefined ? null : runRow(row);
  }

  runs(tenant: TenantId, filter: RunFilter): readonly RunRow[] {
    const { states, rootsOnly, rootRunId, parentRunId, threadId, limit, offset } = filter;
    const [statement, key] = this.#runsBy(tenant, filter);
    const names = states === undefined ? null : JSON.stringify(states);
    const rows = statement.all(
      ...key,
      names,
      names,
      rootsOnly === true ? 1 : 0,
      ...twice(rootRunId),
      ...twice(parentRunId),
      ...twice(threadId),
      limit,
      offset ?? 0,
    );
    return (rows as Stored<RunRow, "lane">[]).map(runRow);
  }

  /** The statement whose index narrows the most, with the values of its key. */
  #runsBy(tenant: TenantId, filter: RunFilter): readonly [SqlStatement, readonly SqlValue[]] {
    const reads = this.#reads;
    const { parentRunId, threadId, rootRunId, states } = filter;
    const oldest = filter.order === "oldest";
    if (parentRunId !== undefined) {
      const key = [tenant, tenant, parentRunId, tenant, parentRunId];
      return [oldest ? reads.childrenOldest : reads.childrenNewest, key];
    }
    if (threadId !== undefined) return [oldest ? reads.threadOldest : reads.threadNewest, [tenant, threadId]];
    if (rootRunId !== undefined)
      return [oldest ? reads.treeOldest : reads.treeNewest, [tenant, tenant, rootRunId]];
    if (states !== undefined && !states.includes("ended"))
      return [oldest ? reads.liveOldest : reads.liveNewest, [tenant]];
    return [oldest ? reads.allOldest : reads.allNewest, [tenant]];
  }

  counts(tenant: TenantId): Readonly<Record<RowState, number>> {
    const counts = { created: 0, ready: 0, running: 0, waiting: 0, awaiting: 0, paused: 0, ended: 0 };
    counts.ended = (this.#reads.countAll.get(tenant) as { readonly count: number }).count;
    for (const row of this.#reads.countLive.all(tenant)) {
      const { state, count } = row as { readonly state: RowState; readonly count: number };
      counts[state] = count;
      counts.ended -= count;
    }
    return counts;
  }

  log(tenant: TenantId, scope: LogScope, afterSeq: number, limit: number): readonly LogRow[] {
    const reads = this.#reads;
    let rows: unknown[];
    if ("runId" in scope) {
      rows = reads.logOfRun.all(tenant, scope.runId, afterSeq, limit);
    } else if ("threadId" in scope) {
      rows = reads.logOfThread.all(tenant, scope.threadId, afterSeq, limit);
    } else if ("rootRunId" in scope) {
      rows = reads.logOfTree.all(tenant, scope.rootRunId, afterSeq, limit);
    } else {
      rows = reads.logOfAll.all(tenant, afterSeq, limit);
    }
    return copies<LogRow>(rows);
  }

  /**
   * The counts are read first: if a signal comes in between, the reader sees it under an older count, so its park is
   * refused. The other way round it could park on a count whose signal it has not seen.
   */
  pending(tenant: TenantId, runId: RunId, afterSignal: number): Pending {
    const found = this.#reads.pendingCounts.get(tenant, runId) as
      | { readonly runNo: number; readonly signalSeq: number; readonly controlSeq: number }
      | undefined;
    if (found === undefined) return { signalSeq: 0, controlSeq: 0, signals: [], inbox: [] };
    const { runNo, signalSeq, controlSeq } = found;
    const signals = signalSeq > afterSignal ? this.#reads.signals.all(runNo, afterSignal) : [];
    return { signalSeq, controlSeq, signals: copies<LogRow>(signals), inbox: this.#unread(runNo) };
  }

  #unread(runNo: number): readonly InboxRow[] {
    return copies<InboxRow>(this.#reads.unread.all(runNo));
  }

  inbox(tenant: TenantId, parentRunId: RunId): readonly InboxRow[] {
    return copies<InboxRow>(this.#reads.inbox.all(tenant, parentRunId, tenant, parentRunId));
  }

  ticket(tenant: TenantId, ticketId: TicketId): TicketRow | null {
    return copy<TicketRow>(this.#reads.ticket.get(tenant, ticketId));
  }

  tickets(tenant: TenantId, filter: Parameters<Store["listTickets"]>[1]): readonly TicketRow[] {
    const reads = this.#reads;
    const { runId, rootRunId, open, limit } = filter;
    const rest = [...twice(open === undefined ? undefined : Number(open)), limit];
    let rows: unknown[];
    if (runId !== undefined) rows = reads.ticketsOfRun.all(tenant, runId, ...twice(rootRunId), ...rest);
    else if (rootRunId !== undefined) rows = reads.ticketsOfTree.all(tenant, rootRunId, ...rest);
    else rows = (open === true ? reads.ticketsOpen : reads.ticketsAll).all(tenant, ...rest);
    return copies<TicketRow>(rows);
  }

  delegation(tenant: TenantId, delegationId: DelegationId): DelegationRow | null {
    const row = this.#reads.delegation.get(tenant, delegationId);
    return row === undefined ? null : delegationRow(row);
  }

  delegations(tenant: TenantId, filter: Parameters<Store["listDelegations"]>[1]): readonly DelegationRow[] {
    const reads = this.#reads;
    const { parentRunId: parent, rootRunId: root, limit } = filter;
    let rows: unknown[];
    if (parent !== undefined) {
      const key = [tenant, parent, tenant, parent, tenant, parent];
      rows = reads.delegationsOfParent.all(...key, ...twice(root), limit);
    } else if (root !== undefined) {
      rows = reads.delegationsOfTree.all(tenant, root, tenant, root, limit);
    } else {
      rows = reads.delegationsAll.all(tenant, limit);
    }
    return rows.map(delegationRow);
  }

  pendingIntents(tenant: TenantId, limit: number): readonly DelegationRow[] {
    return this.#reads.pendingIntents.all(tenant, limit).map(delegationRow);
  }

  orphaned(tenant: TenantId, limit: number): readonly DelegationRow[] {
    return this.#reads.orphaned.all(tenant, limit).map(delegationRow);
  }

  workers(tenant: TenantId): readonly WorkerRow[] {
    type StoredWorker = Stored<Omit<WorkerRow, "publications">, "dead"> & { readonly publications: string };
    return (this.#reads.workers.all(tenant) as StoredWorker[]).map((row) => ({
      ...row,
      dead: row.dead === 1,
      publications: JSON.parse(row.publications) as PublicationRef[],
    }));
  }

  publication(tenant: TenantId, ref: PublicationRef): PublicationRow | null {
    return copy<PublicationRow>(this.#reads.publication.get(tenant, ref));
  }

  headPublication(tenant: TenantId, name: string): PublicationRow | null {
    return copy<PublicationRow>(this.#reads.headPublication.get(tenant, name));
  }

  publications(tenant: TenantId): readonly PublicationRow[] {
    return copies<PublicationRow>(this.#reads.publications.all(tenant));
  }
}

/** For `(? IS NULL OR column = ?)`. */
function twice(value: string | number | undefined): readonly [SqlValue, SqlValue] {
  return [value ?? null, value ?? null];
}

function copy<Row>(row: unknown): Row | null {
  return row === undefined ? null : { ...(row as Row) };
}

/** The driver's rows have no prototype; ours are plain objects. */
function copies<Row>(rows: readonly unknown[]): Row[] {
  return rows.map((row) => ({ ...(row as Row) }));
}

function runRow(row: Stored<RunRow, "lane">): RunRow {
  return { ...row, lane: row.lane === 1 };
}

function delegationRow(stored: unknown): DelegationRow {
  const row = stored as Stored<DelegationRow, "intentDelivered">;
  return { ...row, intentDelivered: row.intentDelivered === 1 };
}
