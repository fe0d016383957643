import type { DelegationId } from "../../domain/id.ts";
import type { ClaimedRun, Commit, Delivery, LaneWrite, Receipt } from "../../runtime/ports/store.ts";
import { copyReceipt } from "./row.ts";
import { claimedRun, isParked, type RunEntry } from "./run-table.ts";
import type { TenantTables } from "./tenant-tables.ts";

/** What a commit did to dispatch, for the hints. */
export interface Stir {
  readonly ready: RunEntry[];
  readonly signalled: RunEntry[];
}

/** Applies one commit that passed its guard. Log entries are numbered lane first, then creations, then signals. */
export class CommitWriter {
  readonly #tables: TenantTables;
  readonly #commit: Commit;
  readonly #now: number;
  readonly #ready = new Set<RunEntry>();
  readonly #signalled = new Set<RunEntry>();
  /** Runs that were parked and got a delivery in this commit. */
  readonly #delivered = new Set<RunEntry>();
  readonly #conflicts: DelegationId[] = [];
  #firstSeq: number | null = null;
  #parked = false;

  constructor(tables: TenantTables, commit: Commit, now: number) {
    this.#tables = tables;
    this.#commit = commit;
    this.#now = now;
  }

  write(): { readonly receipt: Receipt; readonly stir: Stir } {
    const commit = this.#commit;
    const lane = commit.lane === null ? null : (this.#tables.runs.get(commit.lane.runId) ?? null);
    const mayClaim = this.#mayClaim(lane);
    if (commit.lane !== null && lane !== null) this.#writeLane(lane, commit.lane);
    const created = commit.create.map((run) => this.#create(run));
    for (const signal of commit.signals) this.#signal(signal);
    this.#writeDelegations();
    for (const delivery of commit.deliver) this.#deliver(delivery);
    for (const { delegationId, digest, status } of commit.readInbox) {
      this.#tables.inbox.read(delegationId, digest, status);
    }
    this.#writeTickets();
    const claimed = mayClaim ? this.#claim(created, lane) : [];
    const receipt: Receipt = {
      at: this.#now,
      version: lane?.row.version ?? null,
      signalSeq: lane?.row.signalSeq ?? 0,
      controlSeq: lane?.row.controlSeq ?? 0,
      parked: this.#parked,
      claimed,
      conflicts: this.#conflicts,
    };
    this.#tables.receipts.set(commit.operationId, {
      digest: commit.digest,
      receipt: copyReceipt(receipt),
    });
    return { receipt, stir: { ready: [...this.#ready], signalled: [...this.#signalled] } };
  }

  /** Only if the incarnation lives and no work that it carries was due before this commit. */
  #mayClaim(lane: RunEntry | null): boolean {
    const { claim } = this.#commit;
    if (claim === null || !this.#tables.workers.isAlive(claim.incarnation)) return false;
    const parent = claim.parent ? this.#parentOf(lane) : null;
    return !this.#tables.runs.hasDue(this.#now, claim.carries, parent, this.#leaves(lane) ? lane : null);
  }

  /** Whether the commit makes the lane's Run let go of its claim. */
  #leaves(lane: RunEntry | null): boolean {
    const next = this.#commit.lane?.next;
    if (next?.kind === "park") return lane?.row.signalSeq === next.signalSeqSeen;
    return next?.kind === "end";
  }

  #parentOf(lane: RunEntry | null): RunEntry | null {
    const parentRunId = lane?.row.parentRunId ?? null;
    return parentRunId === null ? null : (this.#tables.runs.get(parentRunId) ?? null);
  }

  #writeLane(entry: RunEntry, write: LaneWrite): void {
    const { row, lane } = entry;
    const { runs } = this.#tables;
    lane.version = row.version + 1;
    row.version = lane.version;
    row.fruitlessClaims = 0;
    if (write.summary !== null) row.summary = write.summary;
    this.#append(entry, "lane", 0, write.body, write.lifecycle);
    const { next } = write;
    switch (next.kind) {
      case "hold":
        return;
      case "park": {
        if (row.signalSeq !== next.signalSeqSeen) return;
        const dueAt = next.dueInMs === null ? null : this.#now + next.dueInMs;
        runs.change(entry, { state: next.state, claimedBy: null, dueAt });
        this.#parked = true;
        return;
      }
      case "end": {
        const successor = runs.end(entry, this.#now);
        if (successor?.row.state === "ready") this.#ready.add(successor);
        return;
      }
      default:
        next satisfies never;
    }
  }

  #create(run: Commit["create"][number]): RunEntry {
    const entry = this.#tables.runs.create(this.#tables.tenant, run, this.#now);
    this.#append(entry, "signal", 0, run.body, true);
    this.#tables.delegations.childCreated(run.runId);
    if (entry.row.state === "ready") this.#ready.add(entry);
    return entry;
  }

  #signal(signal: Commit["signals"][number]): void {
    const entry = this.#tables.runs.get(signal.runId);
    if (entry === undefined) return;
    this.#raise(entry, signal.control);
    this.#append(entry, "signal", entry.row.signalSeq, signal.body, signal.lifecycle);
  }

  #raise(entry: RunEntry, control: boolean): void {
    const { row } = entry;
    row.signalSeq += 1;
    if (control) row.controlSeq += 1;
    if (row.state === "running") this.#signalled.add(entry);
    if (isParked(row.state) || (control && row.lane && row.state === "created")) {
      this.#tables.runs.change(entry, { state: "ready", dueAt: this.#now });
      this.#ready.add(entry);
    }
  }

  #deliver(delivery: Delivery): void {
    const { runs, inbox, delegations, tenant } = this.#tables;
    const parent = runs.get(delivery.parentRunId);
    const live = parent !== undefined && parent.row.state !== "ended";
    const outcome = inbox.deliver(tenant, delivery, live ? "unread" : "discarded");
    if (outcome === "conflict") this.#conflicts.push(delivery.delegationId);
    if (outcome !== "written" || parent === undefined) return;
    this.#raise(parent, false);
    if (live) this.#delivered.add(parent);
    else if (delivery.kind === "result") delegations.close(delivery.delegationId);
  }

  #writeDelegations(): void {
    const { runs, delegations, tenant } = this.#tables;
    const { openDelegations, cancelDelegations, closeDelegations, intentsDelivered } = this.#commit;
    for (const opened of openDelegations) {
      delegations.open(tenant, opened, (runId) => runs.get(runId) !== undefined);
    }
    for (const delegationId of cancelDelegations) delegations.requestCancel(delegationId);
    for (const delegationId of closeDelegations) delegations.close(delegationId);
    for (const delegationId of intentsDelivered) delegations.intentDelivered(delegationId);
  }

  #writeTickets(): void {
    const { runs, tickets, tenant } = this.#tables;
    const { rootRunId, openTickets, decideTicket, closeTickets } = this.#commit;
    for (const opened of openTickets) {
      tickets.open(tenant, opened, runs.get(opened.runId)?.row.rootRunId ?? rootRunId, this.#now);
    }
    if (decideTicket !== null) {
      tickets.decide(decideTicket.ticketId, decideTicket.decisionId, decideTicket.decisionDigest);
    }
    for (const { ticketId, reason } of closeTickets) tickets.close(ticketId, reason);
  }

  #claim(created: readonly RunEntry[], lane: RunEntry | null): ClaimedRun[] {
    const { claim, create } = this.#commit;
    if (claim === null) return [];
    const wanted = created.filter((_, index) => create[index]?.claim === true);
    const parent = claim.parent ? this.#parentOf(lane) : null;
    if (parent !== null && this.#delivered.has(parent)) wanted.push(parent);
    const claimed: ClaimedRun[] = [];
    for (const entry of wanted) {
      if (!this.#ready.has(entry) || !claim.carries.has(entry.row.publication)) continue;
      if (!this.#tables.runs.fits(entry)) continue;
      this.#tables.runs.claim(entry, claim.incarnation);
      this.#ready.delete(entry);
      const run = claimedRun(entry);
      this.#tables.tell("claimed", claim.incarnation, this.#now, run, this.#firstSeq ?? undefined);
      claimed.push(run);
    }
    return claimed;
  }

  #append(
    entry: RunEntry,
    source: "lane" | "signal",
    signal: number,
    body: string,
    lifecycle: boolean,
  ): void {
    const first = this.#firstSeq === null;
    const { rootRunId, threadId, runId } = entry.row;
    // A Run that queues for its lane has no version yet; its creation met the thread's.
    const version = signal === 0 ? entry.lane.version : entry.row.version;
    const row = this.#tables.append(
      {
        rootRunId,
        threadId,
        runId,
        source,
        version,
        signal,
        at: this.#now,
        body,
        operationId: first ? this.#commit.operationId : null,
        digest: first ? this.#commit.digest : null,
      },
      lifecycle,
    );
    this.#firstSeq ??= row.seq;
  }
}
