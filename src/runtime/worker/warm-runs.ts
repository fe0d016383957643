import type { RunId } from "../../domain/id.ts";
import type { WarmRun } from "../step/driver-host.ts";

/**
 * Parked Runs that stay decoded in memory, bounded: the least recently parked goes first. Losing one costs a cold load,
 * never a result.
 */
export class WarmRuns {
  readonly #capacity: number;
  readonly #runs = new Map<RunId, WarmRun>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#runs.size;
  }

  keep(runId: RunId, warm: WarmRun): void {
    this.#runs.delete(runId);
    this.#runs.set(runId, warm);
    if (this.#runs.size <= this.#capacity) return;
    const oldest = this.#runs.keys().next().value;
    if (oldest === undefined) return;
    this.#runs.get(oldest)?.session?.dispose();
    this.#runs.delete(oldest);
  }

  take(runId: RunId): WarmRun | undefined {
    const warm = this.#runs.get(runId);
    if (warm !== undefined) this.#runs.delete(runId);
    return warm;
  }

  clear(): void {
    for (const warm of this.#runs.values()) warm.session?.dispose();
    this.#runs.clear();
  }
}
