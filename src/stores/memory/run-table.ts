import type { IncarnationId, RunId, ThreadId } from "../../domain/id.ts";
import { agentOf } from "../../runtime/ports/running-limits.ts";
import type { ClaimedRun, NewRun, RowState, RunFilter, RunRow } from "../../runtime/ports/store.ts";
import { RunningRoom } from "../running-room.ts";
import { ClaimQueue, QueuePlace } from "./claim-queue.ts";
import { bucket, type Mutable } from "./row.ts";

/** A thread's Runs in order of creation, and which of them may run. */
export interface Lane {
  holder: RunEntry | null;
  readonly waiting: RunEntry[];
  readonly runs: RunEntry[];
  /** Commits of all holders so far. */
  version: number;
  hasChild: boolean;
}

export class RunEntry {
  readonly row: Mutable<RunRow>;
  readonly lane: Lane;
  readonly place: QueuePlace<RunEntry>;
  /** On whose behalf it runs; null when nobody was named, or was forgotten. */
  user: string | null;

  constructor(row: Mutable<RunRow>, lane: Lane, order: number, user: string | null) {
    this.row = row;
    this.lane = lane;
    this.user = user;
    this.place = new QueuePlace<RunEntry>(this, order, row.publication, row.rootRunId, row.priority);
  }
}

type Change = Partial<
  Pick<RunRow, "state" | "lane" | "version" | "epoch" | "claimedBy" | "dueAt" | "endedAt">
>;

export function isParked(state: RowState): boolean {
  return state === "waiting" || state === "awaiting" || state === "paused";
}

export function claimedRun({ row }: RunEntry): ClaimedRun {
  const { runId, epoch, version, signalSeq, controlSeq, fruitlessClaims } = row;
  return { runId, epoch, version, signalSeq, controlSeq, fruitlessClaims };
}

/**
 * The Run rows of one tenant with their indexes. State, lane, claim and due time change through `change` alone, which
 * keeps true: a Run stands in the queue if and only if it may be claimed once its time comes, in the held set of the
 * incarnation that runs it, in the count of its state, and while it runs in the counts that limits look at.
 */
export class RunTable {
  readonly room = new RunningRoom<RunId>();
  readonly queue = new ClaimQueue<RunEntry>(this.room);
  readonly counts: Record<RowState, number> = {
    created: 0,
    ready: 0,
    running: 0,
    waiting: 0,
    awaiting: 0,
    paused: 0,
    ended: 0,
  };
  #created = 0;
  readonly #byId = new Map<RunId, RunEntry>();
  #all: RunEntry[] = [];
  #roots: RunEntry[] = [];
  readonly #byRoot = new Map<RunId, RunEntry[]>();
  readonly #byParent = new Map<RunId, RunEntry[]>();
  readonly #lanes = new Map<ThreadId, Lane>();
  readonly #held = new Map<IncarnationId, Set<RunEntry>>();

  get(runId: RunId): RunEntry | undefined {
    return this.#byId.get(runId);
  }

  lane(threadId: ThreadId): Lane | undefined {
    return this.#lanes.get(threadId);
  }

  held(incarnation: IncarnationId): RunEntry[] {
    return [...(this.#held.get(incarnation) ?? [])];
  }

  create(tenant: RunRow["tenant"], run: NewRun, now: number): RunEntry {
    let lane = this.#lanes.get(run.threadId);
    if (lane === undefined) {
      lane = { holder: null, waiting: [], runs: [], version: 0, hasChild: false };
      this.#lanes.set(run.threadId, lane);
    }
    const holds = lane.holder === null;
    const entry = new RunEntry(
      {
        tenant,
        runId: run.runId,
        rootRunId: run.rootRunId,
        parentRunId: run.parentRunId,
        threadId: run.threadId,
        delegationId: run.delegationId,
        agent: run.agent,
        publication: run.publication,
        depth: run.depth,
        priority: run.priority,
        state: "created",
        lane: holds,
        version: holds ? lane.version : 0,
        signalSeq: 0,
        controlSeq: 0,
        epoch: 0,
        fruitlessClaims: 0,
        claimedBy: null,
        dueAt: null,
        createdAt: now,
        endedAt: null,
        summary: run.summary,
      },
      lane,
      this.#created++,
      run.user,
    );
    if (holds) lane.holder = entry;
    else lane.waiting.push(entry);
    if (run.parentRunId === null) this.#roots.push(entry);
    else {
      lane.hasChild = true;
      bucket(this.#byParent, run.parentRunId).push(entry);
    }
    lane.runs.push(entry);
    this.#all.push(entry);
    this.#byId.set(run.runId, entry);
    bucket(this.#byRoot, run.rootRunId).push(entry);
    this.counts.created += 1;
    const atOnce = holds && run.delayMs === 0;
    this.change(entry, { state: atOnce ? "ready" : "created", dueAt: now + run.delayMs });
    return entry;
  }

  change(entry: RunEntry, change: Change): void {
    const { row } = entry;
    const { state, claimedBy } = row;
    Object.assign(row, change);
    if (row.state !== state) {
      this.counts[state] -= 1;
      this.counts[row.state] += 1;
    }
    if (row.claimedBy !== claimedBy) {
      if (claimedBy !== null) this.#letGo(claimedBy, entry);
      if (row.claimedBy !== null) this.#hold(row.claimedBy, entry);
      if (claimedBy === null) this.#began(entry);
      else if (row.claimedBy === null) this.#stopped(entry);
    }
    const claimable = row.lane && row.state !== "running" && row.state !== "ended";
    this.queue.set(entry, claimable ? row.dueAt : null);
  }

  /** Makes the Run running under a new epoch. */
  claim(entry: RunEntry, incarnation: IncarnationId): void {
    entry.row.fruitlessClaims += 1;
    this.change(entry, {
      state: "running",
      epoch: entry.row.epoch + 1,
      claimedBy: incarnation,
      dueAt: null,
    });
  }

  /** Takes the claim away: ready again, and whatever is written under the old epoch is refused. */
  free(entry: RunEntry, now: number): void {
    this.change(entry, { state: "ready", epoch: entry.row.epoch + 1, claimedBy: null, dueAt: now });
  }

  /** Ends the Run and gives the lane to the next in the thread; answers who that is. */
  end(entry: RunEntry, now: number): RunEntry | null {
    const { lane } = entry;
    this.change(entry, { state: "ended", lane: false, endedAt: now, claimedBy: null, dueAt: null });
    const next = lane.waiting.shift() ?? null;
    lane.holder = next;
    if (next !== null) {
      const due = next.row.dueAt !== null && next.row.dueAt <= now;
      this.change(next, { lane: true, version: lane.version, state: due ? "ready" : "created" });
    }
    return next;
  }

  fits({ row }: RunEntry): boolean {
    return !this.room.isLimited || this.room.fits(row.rootRunId, agentOf(row.publication));
  }

  /** Is anything due that fits, once `leaving` runs no more? `except` is left aside. */
  hasDue(
    now: number,
    carries: ReadonlySet<string>,
    except: RunEntry | null,
    leaving: RunEntry | null,
  ): boolean {
    if (leaving === null || !this.room.isLimited) return this.queue.hasDue(now, carries, except);
    this.#stopped(leaving);
    try {
      return this.queue.hasDue(now, carries, except);
    } finally {
      this.#began(leaving);
    }
  }

  #began({ row }: RunEntry): void {
    this.room.add(row.rootRunId, agentOf(row.publication));
    if (this.room.limits.tree !== null) this.queue.treeChanged(row.rootRunId);
  }

  #stopped({ row }: RunEntry): void {
    this.room.remove(row.rootRunId, agentOf(row.publication));
    if (this.room.limits.tree !== null) this.queue.treeChanged(row.rootRunId);
  }

  ofTree(rootRunId: RunId): readonly RunEntry[] {
    return this.#byRoot.get(rootRunId) ?? [];
  }

  roots(): readonly RunEntry[] {
    return this.#roots;
  }

  /** Removes ended Runs; their threads go with them. */
  remove(gone: ReadonlySet<RunEntry>): void {
    const stays = (entry: RunEntry): boolean => !gone.has(entry);
    this.#all = this.#all.filter(stays);
    this.#roots = this.#roots.filter(stays);
    for (const { row } of gone) {
      this.#byId.delete(row.runId);
      this.#byRoot.delete(row.rootRunId);
      this.#lanes.delete(row.threadId);
      if (row.parentRunId !== null) this.#byParent.delete(row.parentRunId);
      this.counts[row.state] -= 1;
    }
  }

  list(filter: RunFilter): RunRow[] {
    const entries = this.#narrowest(filter);
    const newestFirst = filter.order !== "oldest";
    const rows: RunRow[] = [];
    let skip = filter.offset ?? 0;
    for (let index = 0; index < entries.length && rows.length < filter.limit; index += 1) {
      const row = entries[newestFirst ? entries.length - 1 - index : index]?.row;
      if (row === undefined || !matches(row, filter)) continue;
      if (skip > 0) skip -= 1;
      else rows.push({ ...row });
    }
    return rows;
  }

  #narrowest(filter: RunFilter): readonly RunEntry[] {
    if (filter.parentRunId !== undefined) return this.#byParent.get(filter.parentRunId) ?? [];
    if (filter.threadId !== undefined) return this.#lanes.get(filter.threadId)?.runs ?? [];
    if (filter.rootRunId !== undefined) return this.#byRoot.get(filter.rootRunId) ?? [];
    return filter.rootsOnly === true ? this.#roots : this.#all;
  }

  #hold(incarnation: IncarnationId, entry: RunEntry): void {
    const held = this.#held.get(incarnation);
    if (held === undefined) this.#held.set(incarnation, new Set([entry]));
    else held.add(entry);
  }

  #letGo(incarnation: IncarnationId, entry: RunEntry): void {
    const held = this.#held.get(incarnation);
    held?.delete(entry);
    if (held?.size === 0) this.#held.delete(incarnation);
  }
}

function matches(row: RunRow, filter: RunFilter): boolean {
  return (
    (filter.rootRunId === undefined || row.rootRunId === filter.rootRunId) &&
    (filter.parentRunId === undefined || row.parentRunId === filter.parentRunId) &&
    (filter.threadId === undefined || row.threadId === filter.threadId) &&
    (filter.states === undefined || filter.states.includes(row.state)) &&
    (filter.rootsOnly !== true || row.parentRunId === null)
  );
}
