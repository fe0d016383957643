import type { RunId, TenantId } from "../../domain/id.ts";
import type { RunState } from "./run-state.ts";

/** Parked parents beyond this many are read again when they wake. */
const CAPACITY = 4096;

/**
 * The Run rows that this process has read or written last, as they stand in the file. It holds inside one transaction
 * and up to the next, unless another process has committed in between or a transaction was rolled back; whoever changes
 * a row by SQL alone forgets it here.
 */
export class RunCache {
  readonly #rows = new Map<string, RunState>();

  get(tenant: TenantId, runId: RunId): RunState | undefined {
    return this.#rows.get(`${tenant} ${runId}`);
  }

  put(tenant: TenantId, run: RunState): void {
    if (this.#rows.size >= CAPACITY) {
      const [oldest] = this.#rows.keys();
      if (oldest !== undefined) this.#rows.delete(oldest);
    }
    this.#rows.set(`${tenant} ${run.runId}`, run);
  }

  forget(tenant: TenantId, runId: RunId): void {
    this.#rows.delete(`${tenant} ${runId}`);
  }

  clear(): void {
    this.#rows.clear();
  }
}
