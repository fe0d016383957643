import type { OperationalEvent, WakeHint } from "../../runtime/ports/store.ts";
import type { RunId, TenantId } from "../../domain/id.ts";
import type { RunningLimits } from "../../runtime/ports/running-limits.ts";
import { limitsOf } from "./limits-row.ts";
import { RunCache } from "./run-cache.ts";
import type { Statements } from "./statements.ts";

/** What the transaction being written has of its own: its time, the next number of the log, the hints to give after it. */
export class Transaction {
  now = 0;
  /** The rows of Runs, valid until the end of the transaction. */
  readonly runs = new RunCache();
  /** The limits of tenants, as far as they were asked for; valid as long. */
  readonly #limits = new Map<TenantId, RunningLimits>();
  #lastSeq = 0;
  /** SQLite's count of other connections' commits, as of the last transaction. */
  #dataVersion = -1;
  #hints: WakeHint[] = [];
  readonly sql: Statements;
  readonly clock: { now(): number };

  constructor(sql: Statements, clock: { now(): number }) {
    this.sql = sql;
    this.clock = clock;
  }

  /** With the write lock held: what is read now stays true until the end, and until the next if nobody else commits. */
  begin(): void {
    this.now = this.clock.now();
    const version = (this.sql.dataVersion.get() as { readonly data_version: number }).data_version;
    if (version === this.#dataVersion) return;
    this.#dataVersion = version;
    this.runs.clear();
    this.#limits.clear();
    this.#lastSeq = (this.sql.lastSeq.get() as { readonly seq: number }).seq;
  }

  /** Voids all that was noted and changed in memory. */
  rolledBack(): void {
    this.#dataVersion = -1;
    this.#hints = [];
  }

  /** The last number given out. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  limits(tenant: TenantId): RunningLimits {
    let limits = this.#limits.get(tenant);
    if (limits === undefined) {
      limits = limitsOf(this.sql.limits.get(tenant));
      this.#limits.set(tenant, limits);
    }
    return limits;
  }

  forgetLimits(tenant: TenantId): void {
    this.#limits.delete(tenant);
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
