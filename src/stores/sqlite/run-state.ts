import type { ClaimedRun, RowState } from "../../runtime/ports/store.ts";
import type { RunId, ThreadId } from "../../domain/id.ts";
import type { Statements } from "./statements.ts";

/** What a commit decides on and changes of a Run row; the driver's own row object, changed in place and written once. */
export interface RunState {
  readonly runNo: number;
  readonly rootNo: number;
  readonly runId: RunId;
  readonly parentRunId: RunId | null;
  readonly threadId: ThreadId;
  readonly publication: string;
  readonly priority: number;
  state: RowState;
  lane: number;
  version: number;
  signalSeq: number;
  controlSeq: number;
  epoch: number;
  fruitlessClaims: number;
  claimedBy: string | null;
  dueAt: number | null;
  endedAt: number | null;
  /** 1 when it differs from the row. */
  dirty: number;
}

/** The newest Run of a thread, as `lastOnThread` reads it. */
export interface ThreadEnd {
  readonly parentRunId: RunId | null;
  readonly version: number;
  readonly endedAt: number | null;
}

export const MS_PER_PRIORITY = 60_000;

export function claimKey(dueAt: number | null, priority: number): number | null {
  return dueAt === null ? null : dueAt - priority * MS_PER_PRIORITY;
}

export function isParked(run: RunState): boolean {
  return run.state === "waiting" || run.state === "awaiting" || run.state === "paused";
}

export function makeReady(run: RunState, now: number): void {
  run.state = "ready";
  run.claimedBy = null;
  run.dueAt = now;
  run.dirty = 1;
}

/** Raises the Run's signal; parked it becomes ready, ended it stays as it is. */
export function raiseSignal(run: RunState, now: number, control: boolean): void {
  run.signalSeq += 1;
  if (control) run.controlSeq += 1;
  run.dirty = 1;
  if (isParked(run) || (control && run.state === "created" && run.lane === 1)) makeReady(run, now);
}

export function takeClaim(run: RunState, incarnation: string): ClaimedRun {
  run.state = "running";
  run.epoch += 1;
  run.fruitlessClaims += 1;
  run.claimedBy = incarnation;
  run.dueAt = null;
  run.dirty = 1;
  return claimed(run);
}

export function claimed(run: RunState): ClaimedRun {
  return {
    runId: run.runId,
    epoch: run.epoch,
    version: run.version,
    signalSeq: run.signalSeq,
    controlSeq: run.controlSeq,
    fruitlessClaims: run.fruitlessClaims,
  };
}

export function writeRun(sql: Statements, run: RunState, summary: string | null): void {
  sql.writeRun.run(
    run.state,
    run.lane,
    run.version,
    run.signalSeq,
    run.controlSeq,
    run.epoch,
    run.fruitlessClaims,
    run.claimedBy,
    run.dueAt,
    claimKey(run.dueAt, run.priority),
    run.endedAt,
    summary,
    run.runNo,
  );
  run.dirty = 0;
}
