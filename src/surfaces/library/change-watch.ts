import type { TenantId } from "../../domain/id.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type { Store } from "../../runtime/ports/store.ts";

/**
 * Waits for "something was committed", by hint or by poll, whichever comes first: with every hint lost a watcher is late,
 * never stuck.
 */
export class ChangeWatch {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #unsubscribe: () => void;
  #changed = false;
  #resolve: () => void = () => undefined;

  constructor(store: Store, tenant: TenantId, clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
    this.#unsubscribe = store.onWake((hint) => {
      if (hint.tenant === tenant && hint.kind === "log") this.poke();
    });
  }

  poke(): void {
    this.#changed = true;
    this.#resolve();
  }

  /** Resolves at the next change since the last call; rejects when `signal` aborts. */
  async next(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (!this.#changed) {
      await new Promise<void>((resolve, reject) => {
        const finish = (): void => {
          cancel();
          signal?.removeEventListener("abort", abort);
          resolve();
        };
        const abort = (): void => {
          cancel();
          reject(signal?.reason as Error);
        };
        const cancel = this.#clock.timer(this.#pollMs, finish);
        this.#resolve = finish;
        signal?.addEventListener("abort", abort, { once: true });
      });
    }
    this.#changed = false;
    this.#resolve = () => undefined;
  }

  close(): void {
    this.#unsubscribe();
    this.#resolve();
  }
}
