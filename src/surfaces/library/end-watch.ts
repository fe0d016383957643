import type { RunId, TenantId } from "../../domain/id.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type { Store } from "../../runtime/ports/store.ts";

/** Wakes those who wait for a Run's end: by hint at once, by poll when the hint was lost. One subscription for all. */
export class EndWatch {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #waiting = new Map<RunId, Set<() => void>>();
  readonly #unsubscribe: () => void;

  constructor(store: Store, tenant: TenantId, clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
    this.#unsubscribe = store.onWake((hint) => {
      if (hint.kind !== "ended" || hint.tenant !== tenant) return;
      if (hint.runId !== null) this.#wake(hint.runId);
      else for (const runId of [...this.#waiting.keys()]) this.#wake(runId);
    });
  }

  /** Calls `look` once when the Run may have ended or the poll is due; the returned function forgets it. */
  watch(runId: RunId, look: () => void): () => void {
    const forget = (): void => {
      cancel();
      const waiting = this.#waiting.get(runId);
      if (waiting?.delete(once) === true && waiting.size === 0) this.#waiting.delete(runId);
    };
    const once = (): void => {
      forget();
      look();
    };
    const cancel = this.#clock.timer(this.#pollMs, once);
    const waiting = this.#waiting.get(runId);
    if (waiting === undefined) this.#waiting.set(runId, new Set([once]));
    else waiting.add(once);
    return forget;
  }

  close(): void {
    this.#unsubscribe();
    for (const runId of [...this.#waiting.keys()]) this.#wake(runId);
  }

  #wake(runId: RunId): void {
    for (const look of [...(this.#waiting.get(runId) ?? [])]) look();
  }
}
