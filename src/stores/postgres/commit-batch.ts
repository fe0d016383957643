import type { Commit, CommitOutcome, LaneNext } from "../../runtime/ports/store.ts";
import type { PostgresValue } from "../../sql/postgres-driver.ts";

/** What `errand.commit_group` answers. */
export interface GroupAnswer {
  readonly at: number;
  readonly out: readonly CommitOutcome[];
  /** Runs that the group made ready and left unclaimed, and running ones that it signalled. */
  readonly ready: readonly string[];
  readonly signal: readonly string[];
}

type Row = Readonly<Record<string, string | number | boolean | null>>;

/** What two commits of one group cannot share: the group's function looks at each of these as it was before the group. */
export function groupKeys(commit: Commit): readonly string[] {
  const keys = [`operation ${commit.operationId}`];
  for (const { delegationId } of commit.deliver) keys.push(`envelope ${delegationId}`);
  for (const { delegationId } of commit.readInbox) keys.push(`envelope ${delegationId}`);
  for (const { ticketId } of commit.openTickets) keys.push(`ticket ${ticketId}`);
  for (const { ticketId } of commit.closeTickets) keys.push(`ticket ${ticketId}`);
  if (commit.decideTicket !== null) keys.push(`ticket ${commit.decideTicket.ticketId}`);
  return [...new Set(keys)];
}

/** The parameters of `errand.commit_group` for the commits of one tenant. */
export function encodeGroup(commits: readonly Commit[], now: number | null): PostgresValue[] {
  const batch = new Batch();
  for (const commit of commits) batch.add(commit);
  return [commits[0]?.tenant ?? "", batch.json(), batch.texts, now];
}

/** Names that appear in a group, each at one place (counted from 1, as SQL does). */
class Places {
  readonly names: string[] = [];
  readonly #places = new Map<string, number>();

  of(name: string): number {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.names.push(name);
      this.#places.set(name, place);
    }
    return place;
  }
}

class Batch {
  readonly texts: string[] = [];
  readonly #runs = new Places();
  readonly #threads = new Places();
  readonly #incarnations = new Places();
  readonly #carried = new Places();
  readonly #envelopes = new Places();
  readonly #commits: Row[] = [];
  readonly #creates: Row[] = [];
  readonly #signals: Row[] = [];
  readonly #deliveries: Row[] = [];
  readonly #envelopeRows: Row[] = [];
  readonly #opens: Row[] = [];
  readonly #marks: Row[] = [];
  readonly #reads: Row[] = [];
  readonly #tickets: Row[] = [];
  readonly #decisions: Row[] = [];
  readonly #closings: Row[] = [];
  readonly #late: string[] = [];
  readonly #ends: number[] = [];

  add(commit: Commit): void {
    const creates = this.#span(this.#creates, () => this.#addCreates(commit));
    const signals = this.#span(this.#signals, () => this.#addSignals(commit));
    const deliveries = this.#span(this.#deliveries, () => this.#addDeliveries(commit));
    const { claim, decideTicket } = commit;
    const number = this.#commits.push({
      op: commit.operationId,
      digest: commit.digest,
      ...this.#lane(commit),
      ...(creates === null ? {} : { create_from: creates[0], create_to: creates[1] }),
      ...(signals === null ? {} : { signal_from: signals[0], signal_to: signals[1] }),
      ...(deliveries === null ? {} : { deliver_from: deliveries[0], deliver_to: deliveries[1] }),
      ...(decideTicket === null ? {} : { decide: decideTicket.ticketId }),
      ...(claim === null
        ? {}
        : { claimer: claim.incarnation, carries: this.#carries(claim.carries), claim_parent: claim.parent }),
    });
    if (claim !== null) this.#incarnations.of(claim.incarnation);
    this.#addDelegations(commit, number);
    this.#addTickets(commit, number);
    const lane = commit.lane === null ? null : this.#runs.of(commit.lane.runId);
    for (const { delegationId, digest, status } of commit.readInbox) {
      this.#reads.push({ c: number, i: lane, d: delegationId, digest, status });
    }
  }

  json(): string {
    const lists = {
      commits: this.#commits,
      threads: this.#threads.names,
      creates: this.#creates,
      signals: this.#signals,
      deliveries: this.#deliveries,
      envelopes: this.#envelopeRows,
      opens: this.#opens,
      marks: this.#marks,
      reads: this.#reads,
      tickets: this.#tickets,
      decisions: this.#decisions,
      closings: this.#closings,
      late: this.#late,
      ends: this.#ends,
      incarnations: this.#incarnations.names,
      carries: this.#carried.names.map((refs) => JSON.parse(refs) as string[]),
    };
    const present = Object.entries(lists).filter(([, list]) => list.length > 0);
    return JSON.stringify({ runs: this.#runs.names, ...Object.fromEntries(present) });
  }

  #text(text: string): number {
    return this.texts.push(text);
  }

  #carries(carries: ReadonlySet<string>): number {
    return this.#carried.of(JSON.stringify([...carries]));
  }

  #span(rows: readonly Row[], add: () => void): readonly [number, number] | null {
    const from = rows.length + 1;
    add();
    return rows.length < from ? null : [from, rows.length];
  }

  #lane({ lane }: Commit): Row {
    if (lane === null) return {};
    const place = this.#runs.of(lane.runId);
    if (lane.next.kind === "end") this.#ends.push(place);
    return {
      lane: place,
      incarnation: lane.incarnation,
      epoch: lane.epoch,
      version: lane.version,
      control: lane.controlSeqSeen,
      body: this.#text(lane.body),
      summary: lane.summary === null ? null : this.#text(lane.summary),
      lifecycle: lane.lifecycle,
      ...nextRow(lane.next),
    };
  }

  #addCreates(commit: Commit): void {
    for (const run of commit.create) {
      const { parentRunId } = run;
      const opened = commit.openDelegations.some((row) => row.childRunId === run.runId);
      if (parentRunId !== null && !opened) this.#late.push(run.runId);
      this.#creates.push({
        i: this.#runs.of(run.runId),
        t: this.#threads.of(run.threadId),
        parent: parentRunId,
        root: run.rootRunId,
        delegation: run.delegationId,
        agent: run.agent,
        publication: run.publication,
        depth: run.depth,
        priority: run.priority,
        delay: run.delayMs,
        claim: run.claim,
        summary: this.#text(run.summary),
        body: this.#text(run.body),
      });
    }
  }

  #addSignals(commit: Commit): void {
    for (const { runId, body, lifecycle, control, ifEnded } of commit.signals) {
      const record = ifEnded === "record";
      this.#signals.push({ i: this.#runs.of(runId), body: this.#text(body), lifecycle, control, record });
    }
  }

  #addDeliveries(commit: Commit): void {
    for (const { delegationId, parentRunId, childRunId, kind, digest, body } of commit.deliver) {
      const i = this.#runs.of(parentRunId);
      const e = this.#envelopes.of(`${delegationId} ${i}`);
      if (e > this.#envelopeRows.length) this.#envelopeRows.push({ i, d: delegationId, child: childRunId });
      this.#deliveries.push({ e, i, kind, digest, body: this.#text(body) });
    }
  }

  #addDelegations(commit: Commit, c: number): void {
    for (const row of commit.openDelegations) {
      this.#opens.push({
        c,
        d: row.delegationId,
        root: row.rootRunId,
        parent: row.parentRunId,
        child: row.childRunId,
        step: row.step,
        call: row.index,
        target: row.target,
        version: row.contractVersion,
        digest: row.contractDigest,
      });
    }
    for (const d of commit.cancelDelegations) this.#marks.push({ c, d, kind: "cancel" });
    for (const d of commit.closeDelegations) this.#marks.push({ c, d, kind: "close" });
    for (const d of commit.intentsDelivered) this.#marks.push({ c, d, kind: "intent" });
  }

  #addTickets(commit: Commit, c: number): void {
    const root = commit.rootRunId;
    for (const { ticketId, runId, kind, deadlineInMs, body } of commit.openTickets) {
      const text = this.#text(body);
      this.#tickets.push({ c, ticket: ticketId, run: runId, root, kind, deadline: deadlineInMs, body: text });
    }
    if (commit.decideTicket !== null) {
      const { ticketId, decisionId, decisionDigest } = commit.decideTicket;
      this.#decisions.push({ c, ticket: ticketId, decision: decisionId, digest: decisionDigest });
    }
    for (const { ticketId, reason } of commit.closeTickets)
      this.#closings.push({ c, ticket: ticketId, reason });
  }
}

function nextRow(next: LaneNext): Row {
  switch (next.kind) {
    case "hold":
      return { next: "hold" };
    case "park":
      return { next: "park", state: next.state, due: next.dueInMs, seen: next.signalSeqSeen };
    case "end":
      return { next: "end", seen: next.signalSeqSeen ?? null };
    default:
      return next satisfies never;
  }
}
