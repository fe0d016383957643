import type { RunId, TicketId } from "../../domain/id.ts";
import type { Commit, TicketRow } from "../../runtime/ports/store.ts";
import { erasureMark } from "../../runtime/ports/erasure.ts";
import { bucket, type Mutable } from "./row.ts";

type Entry = Mutable<TicketRow>;

/** The tickets of one tenant, listed in the order in which they were opened. */
export class TicketTable {
  readonly #byId = new Map<TicketId, Entry>();
  readonly #byRun = new Map<RunId, Entry[]>();
  readonly #byRoot = new Map<RunId, Entry[]>();
  readonly #open = new Set<Entry>();

  get(ticketId: TicketId): TicketRow | null {
    const entry = this.#byId.get(ticketId);
    return entry === undefined ? null : { ...entry };
  }

  open(
    tenant: TicketRow["tenant"],
    given: Commit["openTickets"][number],
    rootRunId: RunId,
    now: number,
  ): void {
    if (this.#byId.has(given.ticketId)) return;
    const entry: Entry = {
      tenant,
      ticketId: given.ticketId,
      runId: given.runId,
      rootRunId,
      kind: given.kind,
      status: "open",
      openedAt: now,
      deadlineAt: given.deadlineInMs === null ? null : now + given.deadlineInMs,
      body: given.body,
      decisionId: null,
      decisionDigest: null,
      closeReason: null,
    };
    this.#byId.set(entry.ticketId, entry);
    bucket(this.#byRun, entry.runId).push(entry);
    bucket(this.#byRoot, entry.rootRunId).push(entry);
    this.#open.add(entry);
  }

  close(ticketId: TicketId, reason: string): void {
    const entry = this.#byId.get(ticketId);
    if (entry?.status !== "open") return;
    entry.status = "closed";
    entry.closeReason = reason;
    this.#open.delete(entry);
  }

  /** Why a decision now would be refused, or null. */
  refusal(
    ticketId: TicketId,
    now: number,
  ): "ticket_absent" | "ticket_closed" | "ticket_decided" | "ticket_expired" | null {
    const entry = this.#byId.get(ticketId);
    if (entry === undefined) return "ticket_absent";
    if (entry.status === "closed") return "ticket_closed";
    if (entry.status === "decided") return "ticket_decided";
    return entry.deadlineAt !== null && now >= entry.deadlineAt ? "ticket_expired" : null;
  }

  decide(ticketId: TicketId, decisionId: string, decisionDigest: string): void {
    const entry = this.#byId.get(ticketId);
    if (entry?.status !== "open") return;
    entry.status = "decided";
    entry.decisionId = decisionId;
    entry.decisionDigest = decisionDigest;
    this.#open.delete(entry);
  }

  hasOpen(rootRunId: RunId): boolean {
    return (this.#byRoot.get(rootRunId) ?? []).some((entry) => entry.status === "open");
  }

  erase(rootRunId: RunId): void {
    for (const entry of this.#byRoot.get(rootRunId) ?? []) {
      entry.body = erasureMark(entry.body);
      if (entry.closeReason !== null) entry.closeReason = erasureMark(entry.closeReason);
    }
  }

  remove(roots: ReadonlySet<RunId>): void {
    for (const root of roots) {
      for (const entry of this.#byRoot.get(root) ?? []) {
        this.#byId.delete(entry.ticketId);
        this.#byRun.delete(entry.runId);
        this.#open.delete(entry);
      }
      this.#byRoot.delete(root);
    }
  }

  list(filter: {
    readonly rootRunId?: RunId;
    readonly runId?: RunId;
    readonly open?: boolean;
    readonly limit: number;
  }): TicketRow[] {
    const { rootRunId, runId, open, limit } = filter;
    const rows: TicketRow[] = [];
    for (const entry of this.#narrowest(runId, rootRunId, open)) {
      if (rows.length >= limit) break;
      if (runId !== undefined && entry.runId !== runId) continue;
      if (rootRunId !== undefined && entry.rootRunId !== rootRunId) continue;
      if (open !== undefined && (entry.status === "open") !== open) continue;
      rows.push({ ...entry });
    }
    return rows;
  }

  #narrowest(
    runId: RunId | undefined,
    rootRunId: RunId | undefined,
    open: boolean | undefined,
  ): Iterable<Entry> {
    if (runId !== undefined) return this.#byRun.get(runId) ?? [];
    if (rootRunId !== undefined) return this.#byRoot.get(rootRunId) ?? [];
    return open === true ? this.#open : this.#byId.values();
  }
}
