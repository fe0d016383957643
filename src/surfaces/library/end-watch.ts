import type { RunId, TenantId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type { Store } from "../../runtime/ports/store.ts";

type Look = (end: RunEnd | null) => void;

/**
 * Wakes those who wait for a Run's end: with the end itself when it was committed in this process, by hint at once when
 * elsewhere, by poll when the hint was lost. One subscription for all.
 */
export class EndWatch {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #waiting = new Map<RunId, Set<Look>>();
  readonly #unsubscribe: () => void;

  constructor(store: Store, tenant: TenantId, clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
    this.#unsubscribe = store.onWake((hint) => {
      if (hint.kind !== "ended" || hint.tenant !== tenant) return;
      if (hint.runId !== null) this.#wake(hint.runId);
      else for (const runId of this.#waiting.keys()) this.#wake(runId);
    });
  }

  /** A committed end, from the worker of this process. */
  ended(runId: RunId, end: RunEnd): void {
    this.#wake(runId, end);
  }

  /**
   * Calls `look` once: with the end if it is known, with null when the Run may have ended or the poll is due. The returned
   * function forgets it.
   */
  watch(runId: RunId, look: Look): () => void {
    const forget = (): void => {
      cancel();
      const waiting = this.#waiting.get(runId);
      if (waiting?.delete(once) === true && waiting.size === 0) this.#waiting.delete(runId);
    };
    const once: Look = (end) => {
      forget();
      look(end);
    };
    const cancel = this.#clock.timer(this.#pollMs, () => once(null));
    const waiting = this.#waiting.get(runId);
    if (waiting === undefined) this.#waiting.set(runId, new Set([once]));
    else waiting.add(once);
    return forget;
  }

  close(): void {
    this.#unsubscribe();
    for (const runId of this.#waiting.keys()) this.#wake(runId);
  }

  #wake(runId: RunId, end: RunEnd | null = null): void {
    for (const look of this.#waiting.get(runId) ?? []) look(end);
  }
}
