import type { RunId, TenantId, ThreadId } from "../../domain/id.ts";
import { erasureMark } from "../../runtime/ports/erasure.ts";
import type { SqlStatement } from "../../sql/sqlite-driver.ts";
import type { OPERATIONS } from "./operation-statements.ts";
import type { Transaction } from "./transaction.ts";

export type OperationStatements = { readonly [Name in keyof typeof OPERATIONS]: SqlStatement };

interface Root {
  readonly rootNo: number;
  readonly rootRunId: RunId;
}

interface Size {
  readonly runs: number;
  readonly endedAt: number;
}

export interface EndedRoot {
  readonly runNo: number;
  readonly threadId: ThreadId;
  readonly endedAt: number;
}

/** Every time is before this one. */
export const ALWAYS: number = Number.MAX_SAFE_INTEGER;

/** O2: the trees on a thread if all of them are over and done with since before the time, else null. */
export function settledTrees(
  sql: OperationStatements,
  tenant: TenantId,
  threadId: ThreadId,
  before: number,
): readonly (Root & Size)[] | null {
  const roots = sql.rootsOnThread.all(tenant, threadId) as Root[];
  const trees: (Root & Size)[] = [];
  for (const { rootNo, rootRunId } of roots) {
    const found = sql.isUnsettled.get(rootNo, before, rootNo, rootNo, tenant, rootRunId) as {
      readonly unsettled: number;
    };
    if (found.unsettled === 1) return null;
    trees.push({ rootNo, rootRunId, ...(sql.treeSize.get(rootNo) as Size) });
  }
  return trees;
}

/** Removes the trees of one thread, if they are still settled. */
export function pruneThread(
  tx: Transaction,
  sql: OperationStatements,
  tenant: TenantId,
  threadId: ThreadId,
  before: number,
): { readonly trees: number; readonly runs: number } {
  const trees = settledTrees(sql, tenant, threadId, before) ?? [];
  for (const { rootNo, rootRunId, runs, endedAt } of trees) {
    sql.deleteLog.run(rootNo);
    sql.deleteInbox.run(rootNo);
    sql.deleteDelegations.run(rootNo);
    sql.deleteTickets.run(tenant, rootRunId);
    sql.deleteRuns.run(rootNo);
    sql.insertTombstone.run(tenant, rootRunId, runs, endedAt, tx.now);
  }
  if (trees.length > 0) keepFloor(tx, sql);
  return { trees: trees.length, runs: trees.reduce((sum, tree) => sum + tree.runs, 0) };
}

/** O4: what is deleted may be the newest; its numbers are not given out again, nor are its rows looked for in memory. */
export function keepFloor(tx: Transaction, sql: OperationStatements): void {
  sql.setSeqFloor.run(tx.lastSeq);
  tx.runs.clear();
}

/** Erases one tree, if its thread is settled; answers how many Runs it has, and whether they were erased. */
export function eraseTree(
  tx: Transaction,
  sql: OperationStatements,
  tenant: TenantId,
  { rootNo, rootRunId, threadId }: Root & { readonly threadId: ThreadId },
): { readonly runs: number; readonly erased: boolean } {
  const { runs } = sql.treeSize.get(rootNo) as Size;
  if (settledTrees(sql, tenant, threadId, ALWAYS) === null) return { runs, erased: false };
  replace(sql.bodiesOfLog.all(rootNo), sql.eraseLog);
  replace(sql.bodiesOfInbox.all(rootNo), sql.eraseInbox);
  replace(sql.bodiesOfTickets.all(tenant, rootRunId), sql.eraseTicket);
  replace(sql.reasonsOfTickets.all(tenant, rootRunId), sql.eraseReason);
  replace(sql.summaries.all(rootNo), sql.eraseSummary);
  tx.runs.clear();
  return { runs, erased: true };
}

function replace(rows: readonly unknown[], update: SqlStatement): void {
  for (const { no, text } of rows as { readonly no: number; readonly text: string }[]) {
    update.run(erasureMark(text), no);
  }
}
