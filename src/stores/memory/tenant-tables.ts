import type { IncarnationId, OperationId, RunId, TenantId } from "../../domain/id.ts";
import type { LogRow, OperationalEvent, Receipt } from "../../runtime/ports/store.ts";
import type { Tombstone } from "../../runtime/ports/store-operations.ts";
import { DelegationTable } from "./delegation-table.ts";
import { FactLog } from "./fact-log.ts";
import { Feed } from "./feed.ts";
import { InboxTable } from "./inbox-table.ts";
import { PublicationTable } from "./publication-table.ts";
import { RunTable } from "./run-table.ts";
import { TicketTable } from "./ticket-table.ts";
import { WorkerTable } from "./worker-table.ts";

/** Numbers the entries of the whole store, tenants together. */
export interface Sequence {
  next(): number;
}

/** Everything that one tenant has. Nothing in here knows of another tenant (L31). */
export class TenantTables {
  readonly tenant: TenantId;
  readonly runs: RunTable = new RunTable();
  readonly log: FactLog = new FactLog();
  readonly delegations: DelegationTable = new DelegationTable();
  readonly inbox: InboxTable = new InboxTable();
  readonly tickets: TicketTable = new TicketTable();
  readonly workers: WorkerTable = new WorkerTable();
  readonly publications: PublicationTable = new PublicationTable();
  readonly lifecycle: Feed;
  readonly operational: Feed;
  tombstones: readonly Tombstone[] = [];
  /** What was answered to each operation, kept as long as its tree (L5). */
  readonly receipts: Map<OperationId, { readonly digest: string; readonly receipt: Receipt }> = new Map();
  readonly #sequence: Sequence;

  constructor(tenant: TenantId, storeId: string, sequence: Sequence) {
    this.tenant = tenant;
    this.lifecycle = new Feed(storeId, tenant, "lifecycle");
    this.operational = new Feed(storeId, tenant, "operational");
    this.#sequence = sequence;
  }

  append(row: Omit<LogRow, "seq" | "tenant">, lifecycle: boolean): LogRow {
    const entry: LogRow = { seq: this.#sequence.next(), tenant: this.tenant, ...row };
    this.log.append(entry);
    if (lifecycle) {
      this.lifecycle.add({ seq: entry.seq, at: entry.at, entry: { feed: "lifecycle", row: entry } });
    }
    return entry;
  }

  /** @param seq of the log entry that the event follows from; without one the event gets its own. */
  tell(
    kind: OperationalEvent["kind"],
    incarnation: IncarnationId,
    at: number,
    run: { readonly runId: RunId; readonly epoch: number } | null,
    seq: number = this.#sequence.next(),
  ): void {
    const event = { kind, incarnation, runId: run?.runId ?? null, epoch: run?.epoch ?? null };
    this.operational.add({ seq, at, entry: { feed: "operational", event } });
  }
}
