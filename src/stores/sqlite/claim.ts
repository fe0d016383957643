import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type { ClaimedRun, Store } from "../../runtime/ports/store.ts";
import type { Transaction } from "./transaction.ts";

type ClaimRequest = Parameters<Store["claim"]>[1];
type Released = Parameters<Store["release"]>[2];

/** Whether a due Run other than `exceptRunNo` waits that somebody who carries `carries` could claim. */
export function hasOlderWork(
  tx: Transaction,
  tenant: TenantId,
  carries: ReadonlySet<string>,
  exceptRunNo: number,
): boolean {
  const { sql, now } = tx;
  if (sql.anyDue.get(tenant, now) === undefined) return false;
  for (const publication of carries) {
    if (sql.otherClaimable.get(tenant, publication, now, now, exceptRunNo) !== undefined) return true;
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
  if (carries.size > 1) {
    rows.sort((left, right) => left.claimKey - right.claimKey || left.runNo - right.runNo);
  }
  return rows.slice(0, limit);
}

export function claim(tx: Transaction, tenant: TenantId, request: ClaimRequest): readonly ClaimedRun[] {
  const { sql } = tx;
  const { incarnation } = request;
  if (sql.workerAlive.get(tenant, incarnation) === undefined) return [];
  return firstClaimable(tx, tenant, request).map((row) => {
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
