import type { TenantId } from "../../domain/id.ts";
import { agentOf, hasLimits } from "../../runtime/ports/running-limits.ts";
import { RunningRoom } from "../running-room.ts";
import type { SqlStatement } from "../../sql/sqlite-driver.ts";
import type { Transaction } from "./transaction.ts";

/** What the tenant's limits leave at this moment of the transaction; null without limits. Trees are numbers. */
export function runningRoom(tx: Transaction, tenant: TenantId): RunningRoom<number> | null {
  const limits = tx.limits(tenant);
  if (!hasLimits(limits)) return null;
  const room = countedRoom(tx.sql.running, tenant);
  room.limits = limits;
  return room;
}

/** Counted anew from what runs, so that no slot can be lost. */
export function countedRoom(running: SqlStatement, tenant: TenantId): RunningRoom<number> {
  const room = new RunningRoom<number>();
  const rows = running.all(tenant) as { readonly publication: string; readonly rootNo: number }[];
  for (const { publication, rootNo } of rows) room.add(rootNo, agentOf(publication));
  return room;
}
