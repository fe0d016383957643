import type { IncarnationId, TenantId } from "../../domain/id.ts";
import type { ClaimedRun, Store } from "../../runtime/ports/store.ts";
import { freeRunsOf } from "./claim.ts";
import type { Transaction } from "./transaction.ts";

type NewWorker = Parameters<Store["registerWorker"]>[1];

/** Registering again changes the publications alone; a dead incarnation stays dead. */
export function registerWorker(tx: Transaction, tenant: TenantId, worker: NewWorker): void {
  const { sql, now } = tx;
  const { incarnation, name, host, pid } = worker;
  const publications = JSON.stringify(worker.publications);
  const added = sql.insertWorker.run(tenant, incarnation, name, host, pid, now, now, publications);
  if (Number(added.changes) === 0) sql.updateWorker.run(publications, tenant, incarnation);
  else tx.event(tenant, "worker_started", incarnation, null, null);
}

export function heartbeat(
  tx: Transaction,
  tenant: TenantId,
  incarnation: IncarnationId,
): { readonly alive: boolean; readonly held: readonly ClaimedRun[] } {
  if (Number(tx.sql.renewWorker.run(tx.now, tenant, incarnation).changes) === 0)
    return { alive: false, held: [] };
  const held = tx.sql.heldBy.all(tenant, incarnation) as ClaimedRun[];
  return { alive: true, held: held.map((run) => ({ ...run })) };
}

export function deregisterWorker(tx: Transaction, tenant: TenantId, incarnation: IncarnationId): void {
  if (Number(tx.sql.endWorker.run(tenant, incarnation).changes) === 0) return;
  freeRunsOf(tx, tenant, incarnation, "released");
  tx.event(tenant, "worker_stopped", incarnation, null, null);
}

export function reapWorkers(tx: Transaction, tenant: TenantId, leaseMs: number): readonly IncarnationId[] {
  const expired = tx.sql.expiredWorkers.all(tenant, tx.now - leaseMs) as { incarnation: IncarnationId }[];
  return expired.map(({ incarnation }) => {
    tx.sql.endWorker.run(tenant, incarnation);
    tx.event(tenant, "worker_dead", incarnation, null, null);
    freeRunsOf(tx, tenant, incarnation, "lease_lost");
    return incarnation;
  });
}
