import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type { ClaimedRun, Store } from "../../runtime/ports/store.ts";
import { agentOf } from "../../runtime/ports/running-limits.ts";
import type { RunningRoom } from "../running-room.ts";
import { runningRoom } from "./running.ts";
import type { Transaction } from "./transaction.ts";

type ClaimRequest = Parameters<Store["claim"]>[1];
type Released = Parameters<Store["release"]>[2];

/** Whether a due Run that fits the limits, other than `exceptRunNo` waits that somebody who carries `carries` could claim. */
export function hasOlderWork(
  tx: Transaction,
  tenant: TenantId,
  carries: ReadonlySet<string>,
  exceptRunNo: number,
  room: RunningRoom<number> | null,
): boolean {
  const { sql, now } = tx;
  if (sql.anyDue.get(tenant, now) === undefined) return false;
  if (room !== null) return hasOlderFitting(tx, tenant, carries, exceptRunNo, room);
  for (const publication of carries) {
    if (sql.otherClaimable.get(tenant, publication, now, now, exceptRunNo) !== undefined) return true;
  }
  return false;
}

function hasOlderFitting(
  tx: Transaction,
  tenant: TenantId,
  carries: ReadonlySet<string>,
  exceptRunNo: number,
  room: RunningRoom<number>,
): boolean {
  if (!room.tenantHasRoom()) return false;
  const { sql, now } = tx;
  const full = JSON.stringify(room.fullTrees());
  for (const publication of carries) {
    if (!room.agentHasRoom(agentOf(publication))) continue;
    if (sql.otherFitting.get(tenant, publication, now, now, exceptRunNo, full) !== undefined) return true;
  }
  return false;
}

type Claimable = ClaimedRun & { readonly runNo: number; readonly claimKey: number };

/** The first of each carried publication, merged: what nobody here carries costs nothing. */
function firstClaimable(tx: Transaction, tenant: TenantId, request: ClaimRequest): readonly Claimable[] {
  const { carries, limit } = request;
  const rows: Claimable[] = [];
  for (const publication of carries) {
    rows.push(...(tx.sql.claimable.all(tenant, publication, tx.now, tx.now, limit) as Claimable[]));
  }
  return firstOf(rows, carries.size, limit);
}

function firstOf<Row extends Claimable>(rows: Row[], queues: number, limit: number): readonly Row[] {
  if (queues > 1) rows.sort((left, right) => left.claimKey - right.claimKey || left.runNo - right.runNo);
  return rows.slice(0, limit);
}

type Fitting = Claimable & { readonly rootNo: number; readonly publication: string };

/**
 * The same under limits. What the rows taken so far have made full is left out of the next look, so each look takes one
 * at least.
 */
function firstFitting(
  tx: Transaction,
  tenant: TenantId,
  request: ClaimRequest,
  room: RunningRoom<number>,
): readonly Claimable[] {
  const taken = new Map<number, Fitting>();
  for (;;) {
    const wanted = request.limit - taken.size;
    if (wanted <= 0 || !room.tenantHasRoom()) break;
    const full = JSON.stringify(room.fullTrees());
    const publications = [...request.carries].filter((one) => room.agentHasRoom(agentOf(one)));
    const rows = publications.flatMap(
      (publication) =>
        tx.sql.fitting.all(tenant, publication, tx.now, tx.now, full, request.limit) as Fitting[],
    );
    const fresh = rows.filter((row) => !taken.has(row.runNo));
    let skipped = false;
    for (const row of firstOf(fresh, publications.length, wanted)) {
      if (!room.fits(row.rootNo, agentOf(row.publication))) {
        skipped = true;
        continue;
      }
      room.add(row.rootNo, agentOf(row.publication));
      taken.set(row.runNo, row);
    }
    if (!skipped) break;
  }
  return [...taken.values()];
}

export function claim(tx: Transaction, tenant: TenantId, request: ClaimRequest): readonly ClaimedRun[] {
  const { sql } = tx;
  const { incarnation } = request;
  if (sql.workerAlive.get(tenant, incarnation) === undefined) return [];
  const room = runningRoom(tx, tenant);
  const rows = room === null ? firstClaimable(tx, tenant, request) : firstFitting(tx, tenant, request, room);
  return rows.map((row) => {
    sql.claimRun.run(incarnation, row.runNo);
    tx.runs.forget(tenant, row.runId);
    const epoch = row.epoch + 1;
    tx.event(tenant, "claimed", incarnation, row.runId, epoch);
    return {
      runId: row.runId,
      epoch,
      version: row.version,
      signalSeq: row.signalSeq,
      controlSeq: row.controlSeq,
      fruitlessClaims: row.fruitlessClaims + 1,
    };
  });
}

export function release(tx: Transaction, tenant: TenantId, incarnation: IncarnationId, runs: Released): void {
  const { sql, now } = tx;
  for (const { runId, epoch } of runs) {
    if (Number(sql.releaseRun.run(now, now, tenant, runId, incarnation, epoch).changes) === 0) continue;
    tx.runs.forget(tenant, runId);
    tx.event(tenant, "released", incarnation, runId, epoch);
    tx.hint(tenant, runId, "ready");
  }
}

/** Frees whatever the incarnation still holds, under higher epochs. */
export function freeRunsOf(
  tx: Transaction,
  tenant: TenantId,
  incarnation: IncarnationId,
  kind: "released" | "lease_lost",
): void {
  const { sql, now } = tx;
  const held = sql.heldBy.all(tenant, incarnation) as { readonly runId: RunId; readonly epoch: number }[];
  if (held.length === 0) return;
  sql.freeRunsOf.run(now, now, tenant, incarnation);
  for (const { runId, epoch } of held) {
    tx.runs.forget(tenant, runId);
    tx.event(tenant, kind, incarnation, runId, epoch);
    tx.hint(tenant, runId, "ready");
  }
}
