import type { OperationalEvent, WakeHint } from "../../runtime/ports/store.ts";
import type { RunId, TenantId } from "../../domain/id.ts";
import type { Statements } from "./statements.ts";

/** What the transaction being written has of its own: its time, the next number of the log, the hints to give after it. */
export class Transaction {
  now = 0;
  #lastSeq = 0;
  #hints: WakeHint[] = [];
  readonly sql: Statements;
  readonly #clock: { now(): number };

  constructor(sql: Statements, clock: { now(): number }) {
    this.sql = sql;
    this.#clock = clock;
  }

  /** With the write lock held, so that no other process numbers its entries meanwhile. */
  begin(): void {
    this.now = this.#clock.now();
    this.#lastSeq = (this.sql.lastSeq.get() as { seq: number }).seq;
  }

  nextSeq(): number {
    this.#lastSeq += 1;
    return this.#lastSeq;
  }

  event(
    tenant: TenantId,
    kind: OperationalEvent["kind"],
    incarnation: string,
    runId: RunId | null,
    epoch: number | null,
  ): void {
    this.sql.insertEvent.run(this.nextSeq(), tenant, this.now, kind, incarnation, runId, epoch);
  }

  hint(tenant: TenantId, runId: RunId | null, kind: WakeHint["kind"]): void {
    this.#hints.push({ tenant, runId, kind });
  }

  /** The hints noted since the last call. */
  takeHints(): readonly WakeHint[] {
    const hints = this.#hints;
    if (hints.length > 0) this.#hints = [];
    return hints;
  }
}
