import type { NewRun } from "../../runtime/ports/store.ts";
import type { RunId, TenantId } from "../../domain/id.ts";
import { type RunState, claimKey, writeRun } from "./run-state.ts";
import type { Transaction } from "./transaction.ts";

/** Writes the row of a new Run and remembers it. */
export function insertRun(
  tx: Transaction,
  tenant: TenantId,
  run: NewRun,
  row: RunState,
  parentNo: number,
): void {
  tx.sql.insertRun.run(
    row.runNo,
    tenant,
    row.runId,
    row.rootNo,
    parentNo,
    run.rootRunId,
    row.parentRunId,
    row.threadId,
    run.delegationId,
    run.agent,
    row.publication,
    run.depth,
    row.priority,
    row.state,
    row.lane,
    row.version,
    row.epoch,
    row.fruitlessClaims,
    row.claimedBy,
    row.dueAt,
    claimKey(row.dueAt, row.priority),
    tx.now,
    run.summary,
    run.user,
  );
  tx.runs.put(tenant, row);
}

/** The rows that one commit works on, each loaded and written once. */
export class RunsAtWork {
  readonly #tx: Transaction;
  readonly #tenant: TenantId;
  readonly #rows: RunState[] = [];

  constructor(tx: Transaction, tenant: TenantId) {
    this.#tx = tx;
    this.#tenant = tenant;
  }

  load(runId: RunId): RunState | null {
    for (const row of this.#rows) if (row.runId === runId) return row;
    let row = this.#tx.runs.get(this.#tenant, runId);
    if (row === undefined) {
      row = this.#tx.sql.findRun.get(this.#tenant, runId) as RunState | undefined;
      if (row === undefined) return null;
      this.#tx.runs.put(this.#tenant, row);
    }
    this.#rows.push(row);
    return row;
  }

  write(): void {
    for (const row of this.#rows) {
      if (row.dirty === 1) writeRun(this.#tx.sql, row, null);
      if (row.endedAt !== null) this.#tx.runs.forget(this.#tenant, row.runId);
    }
  }
}
