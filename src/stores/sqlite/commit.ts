import type { RunId } from "../../domain/id.ts";
import type {
  ClaimedRun,
  Commit,
  CommitOutcome,
  LaneWrite,
  NewRun,
  Receipt,
} from "../../runtime/ports/store.ts";
import { agentOf, hasLimits } from "../../runtime/ports/running-limits.ts";
import type { RunningRoom } from "../running-room.ts";
import { guard } from "./commit-guard.ts";
import { CommitLog } from "./commit-log.ts";
import { hasOlderWork } from "./claim.ts";
import { deliver } from "./delivery.ts";
import { type RunState, isParked, raiseSignal, takeClaim, writeRun, type ThreadEnd } from "./run-state.ts";
import { runningRoom } from "./running.ts";
import { RunsAtWork, insertRun } from "./runs-at-work.ts";
import type { Transaction } from "./transaction.ts";

/*
 * One commit inside an open transaction.
 *
 * C1 Every guard and refusal is decided by reading before the first write, so a refusal leaves nothing to undo.
 * C2 A Run row is loaded once and written once, whatever happens to it.
 * C3 The commit's first log row takes the first number and is inserted last: it carries the receipt.
 */

export function applyCommit(tx: Transaction, commit: Commit): CommitOutcome {
  const runs = new RunsAtWork(tx, commit.tenant);
  const rejection = guard(tx, commit, runs);
  if (rejection !== null) return rejection;
  return { kind: "committed", receipt: new Application(tx, commit, runs).apply() };
}

/** The writes of one commit that nothing refuses any more. */
class Application {
  readonly #tx: Transaction;
  readonly #commit: Commit;
  readonly #runs: RunsAtWork;
  readonly #lane: RunState | null;
  readonly #claimed: ClaimedRun[] = [];
  readonly #log: CommitLog;
  #parked = false;
  /** Whether the commit's wish to claim is granted: nothing older was due before it. */
  #mayClaim = false;
  /** What the tenant's limits leave, while the commit may claim; null without limits. */
  #room: RunningRoom<number> | null = null;
  /** The lane Run's parent, if it is wished for and was parked before this commit. */
  #parent: RunState | null = null;

  constructor(tx: Transaction, commit: Commit, runs: RunsAtWork) {
    this.#tx = tx;
    this.#commit = commit;
    this.#runs = runs;
    this.#lane = commit.lane === null ? null : runs.load(commit.lane.runId);
    this.#log = new CommitLog(tx, commit);
  }

  apply(): Receipt {
    const commit = this.#commit;
    if (commit.claim !== null) this.#weighClaim(commit.claim);
    if (commit.lane !== null && this.#lane !== null) this.#writeLane(commit.lane, this.#lane);
    for (const run of commit.create) this.#create(run);
    for (const signal of commit.signals) this.#signal(signal);
    this.#writeDelegations();
    const conflicts = deliver(this.#tx, commit, this.#runs);
    this.#writeTickets();
    this.#claimParent();
    this.#runs.write();
    this.#tx.hint(commit.tenant, null, "log");
    if (commit.lane?.next.kind === "end") this.#tx.hint(commit.tenant, commit.lane.runId, "ended");

    const receipt: Receipt = {
      at: this.#tx.now,
      version: this.#lane === null ? null : this.#lane.version,
      signalSeq: this.#lane === null ? 0 : this.#lane.signalSeq,
      controlSeq: this.#lane === null ? 0 : this.#lane.controlSeq,
      parked: this.#parked,
      claimed: this.#claimed,
      conflicts,
    };
    this.#log.writeFirst(receipt);
    return receipt;
  }

  /** A lane's holder is alive, or its epoch would have been raised; anybody else is asked for. */
  #weighClaim(claim: NonNullable<Commit["claim"]>): void {
    const { tenant } = this.#commit;
    const isHolder = this.#lane !== null && this.#lane.claimedBy === claim.incarnation;
    if (!isHolder && this.#tx.sql.workerAlive.get(tenant, claim.incarnation) === undefined) return;
    const parentRunId = this.#lane?.parentRunId ?? null;
    const parent = claim.parent && parentRunId !== null ? this.#runs.load(parentRunId) : null;
    const room = runningRoom(this.#tx, tenant);
    if (room !== null && this.#lane !== null && this.#leaves(this.#lane)) {
      room.remove(this.#lane.rootNo, agentOf(this.#lane.publication));
    }
    if (hasOlderWork(this.#tx, tenant, claim.carries, parent === null ? 0 : parent.runNo, room)) return;
    this.#mayClaim = true;
    this.#room = room;
    if (parent !== null && isParked(parent)) this.#parent = parent;
  }

  /** Whether the commit makes the lane's Run let go of its claim. */
  #leaves(run: RunState): boolean {
    const next = this.#commit.lane?.next;
    return next?.kind === "park" ? run.signalSeq === next.signalSeqSeen : next?.kind === "end";
  }

  /** Takes a slot for the Run if the limits leave one. */
  #takeSlot(rootNo: number, publication: string): boolean {
    const room = this.#room;
    if (room === null) return true;
    const agent = agentOf(publication);
    if (!room.fits(rootNo, agent)) return false;
    room.add(rootNo, agent);
    return true;
  }

  #writeLane(write: LaneWrite, run: RunState): void {
    const { now, sql } = this.#tx;
    const { next } = write;
    run.version += 1;
    run.fruitlessClaims = 0;
    this.#log.add(run.runNo, "lane", run.version, 0, write.lifecycle, write.body);
    let held = false;
    switch (next.kind) {
      case "hold":
        held = true;
        break;
      case "park":
        if (run.signalSeq !== next.signalSeqSeen) {
          held = true;
          break;
        }
        this.#parked = true;
        run.state = next.state;
        run.claimedBy = null;
        run.dueAt = next.dueInMs === null ? null : now + next.dueInMs;
        break;
      case "end":
        run.state = "ended";
        run.lane = 0;
        run.claimedBy = null;
        run.dueAt = null;
        run.endedAt = now;
        break;
      default:
        next satisfies never;
    }
    if (held) {
      sql.holdRun.run(run.version, run.signalSeq, run.controlSeq, write.summary, run.runNo);
      return;
    }
    writeRun(sql, run, write.summary);
    // Where there are limits, a slot is free for somebody.
    if (hasLimits(this.#tx.limits(this.#commit.tenant))) this.#tx.hint(this.#commit.tenant, null, "ready");
    if (run.dueAt !== null) this.#hintDue(run);
    if (run.endedAt !== null) this.#passLane(run);
  }

  /** To the oldest Run that is queued on the thread. */
  #passLane(from: RunState): void {
    const { now, sql } = this.#tx;
    const { tenant } = this.#commit;
    const next = sql.nextOnThread.get(tenant, from.threadId, from.runNo) as { runId: RunId } | undefined;
    const run = next === undefined ? null : this.#runs.load(next.runId);
    if (run === null) return;
    run.lane = 1;
    run.version = from.version;
    run.state = run.dueAt !== null && run.dueAt > now ? "created" : "ready";
    run.dirty = 1;
    this.#hintDue(run);
  }

  #create(run: NewRun): void {
    const { now, sql } = this.#tx;
    const { tenant, claim } = this.#commit;
    const lane = this.#lane;
    const runNo = this.#tx.nextSeq();
    let version = 0;
    let hasLane = true;
    const last = sql.lastOnThread.get(tenant, run.threadId) as ThreadEnd | undefined;
    if (last !== undefined) {
      hasLane = last.endedAt !== null;
      const holder = hasLane
        ? last
        : (sql.holderOnThread.get(tenant, run.threadId) as { readonly version: number } | undefined);
      version = holder === undefined ? 0 : holder.version;
    }
    let rootNo = runNo;
    let parentNo = 0;
    if (lane !== null && run.parentRunId === lane.runId) {
      rootNo = lane.rootNo;
      parentNo = lane.runNo;
    } else if (run.parentRunId !== null) {
      rootNo = this.#numberOf(run.rootRunId) ?? runNo;
      parentNo = this.#numberOf(run.parentRunId) ?? 0;
    }
    const granted =
      claim !== null &&
      this.#mayClaim &&
      run.claim &&
      hasLane &&
      run.delayMs === 0 &&
      claim.carries.has(run.publication) &&
      this.#takeSlot(rootNo, run.publication);
    const row: RunState = {
      runNo,
      rootNo,
      runId: run.runId,
      parentRunId: run.parentRunId,
      threadId: run.threadId,
      publication: run.publication,
      priority: run.priority,
      state: granted ? "running" : hasLane && run.delayMs === 0 ? "ready" : "created",
      lane: hasLane ? 1 : 0,
      // A queued Run gets its version with the lane; its creation met the thread's.
      version: hasLane ? version : 0,
      signalSeq: 0,
      controlSeq: 0,
      epoch: granted ? 1 : 0,
      fruitlessClaims: granted ? 1 : 0,
      claimedBy: granted ? claim.incarnation : null,
      dueAt: granted ? null : now + run.delayMs,
      endedAt: null,
      dirty: 0,
    };
    insertRun(this.#tx, tenant, run, row, parentNo);
    this.#log.addAt(runNo, runNo, "signal", version, 0, true, run.body);
    if (granted) this.#claimed.push(this.#claimedAtBirth(run.runId, version));
    else if (hasLane && run.delayMs === 0) this.#tx.hint(tenant, run.runId, "ready");
  }

  #claimedAtBirth(runId: RunId, version: number): ClaimedRun {
    let signalSeq = 0;
    let controlSeq = 0;
    for (const signal of this.#commit.signals) {
      if (signal.runId !== runId) continue;
      signalSeq += 1;
      if (signal.control) controlSeq += 1;
    }
    return { runId, epoch: 1, version, signalSeq, controlSeq, fruitlessClaims: 1 };
  }

  #signal(signal: Commit["signals"][number]): void {
    const run = this.#runs.load(signal.runId);
    if (run === null) return;
    raiseSignal(run, this.#tx.now, signal.control);
    this.#log.add(run.runNo, "signal", run.version, run.signalSeq, signal.lifecycle, signal.body);
    if (run.state === "running") this.#tx.hint(this.#commit.tenant, run.runId, "signal");
    else if (run.dueAt !== null) this.#hintDue(run);
  }

  #writeDelegations(): void {
    const { sql } = this.#tx;
    const { tenant, openDelegations, closeDelegations, cancelDelegations, intentsDelivered } = this.#commit;
    for (const row of openDelegations) {
      const parent = this.#runs.load(row.parentRunId);
      sql.openDelegation.run(
        tenant,
        row.delegationId,
        parent === null ? 0 : parent.rootNo,
        parent === null ? 0 : parent.runNo,
        row.rootRunId,
        row.parentRunId,
        row.childRunId,
        row.step,
        row.index,
        row.target,
        row.contractVersion,
        row.contractDigest,
      );
    }
    for (const id of cancelDelegations) sql.cancelDelegation.run(tenant, id);
    for (const id of closeDelegations) sql.closeDelegation.run(tenant, id);
    for (const id of intentsDelivered) sql.intentDelivered.run(tenant, id);
  }

  #writeTickets(): void {
    const { now, sql } = this.#tx;
    const { tenant, rootRunId, openTickets, closeTickets, decideTicket } = this.#commit;
    for (const { ticketId, runId, kind, deadlineInMs, body } of openTickets) {
      const root =
        (sql.rootOf.get(tenant, runId) as { rootRunId: string } | undefined)?.rootRunId ?? rootRunId;
      const deadlineAt = deadlineInMs === null ? null : now + deadlineInMs;
      sql.openTicket.run(tenant, ticketId, runId, root, kind, now, deadlineAt, body);
    }
    if (decideTicket !== null) {
      const { decisionId, decisionDigest, ticketId } = decideTicket;
      sql.decideTicket.run(decisionId, decisionDigest, tenant, ticketId);
    }
    for (const { ticketId, reason } of closeTickets) sql.closeTicket.run(reason, tenant, ticketId);
  }

  #claimParent(): void {
    const { claim, deliver: deliveries } = this.#commit;
    const parent = this.#parent;
    if (claim === null || parent === null || parent.state !== "ready") return;
    if (!deliveries.some((delivery) => delivery.parentRunId === parent.runId)) return;
    if (!claim.carries.has(parent.publication)) return;
    if (this.#takeSlot(parent.rootNo, parent.publication))
      this.#claimed.push(takeClaim(parent, claim.incarnation));
  }

  #numberOf(runId: RunId): number | undefined {
    return (this.#tx.sql.runNo.get(this.#commit.tenant, runId) as { runNo: number } | undefined)?.runNo;
  }

  #hintDue(run: RunState): void {
    if (run.dueAt !== null && run.dueAt <= this.#tx.now)
      this.#tx.hint(this.#commit.tenant, run.runId, "ready");
  }
}
