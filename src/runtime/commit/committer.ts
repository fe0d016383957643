import { ErrandError } from "../../domain/errand-error.ts";
import type { TenantId } from "../../domain/id.ts";
import type { Clock } from "../ports/clock.ts";
import type { Commit, CommitOutcome, Store } from "../ports/store.ts";
import type { Telemetry } from "../ports/telemetry.ts";

/** First and longest pause between tries of a commit whose outcome is unknown, ms. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Sends commits and settles unknown outcomes: a lost reply, a busy store or a broken connection is answered by sending
 * the same operation id again, until the store says what became of it (L5). Nothing else is done in between.
 */
export class Committer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;

  constructor(store: Store, clock: Clock, telemetry: Telemetry) {
    this.#store = store;
    this.#clock = clock;
    this.#telemetry = telemetry;
  }

  /**
   * @param interrupt made only when a retry is needed; gives up when it aborts (the lease is gone, the process stops), and
   *   the commit may then have happened or not
   * @throws the store's error when no retry can help
   */
  async commit(commit: Commit, interrupt: () => AbortSignal): Promise<CommitOutcome> {
    return this.insist(commit.tenant, "commit", () => this.#store.commit(commit), interrupt);
  }

  /** Makes a call that may be made twice, until the store answers it. Waits longer each time. */
  async insist<T>(
    tenant: TenantId,
    during: string,
    call: () => Promise<T>,
    interrupt: () => AbortSignal,
  ): Promise<T> {
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!passes(error)) throw error;
        this.#telemetry.emit({ type: "store_trouble", tenant, during, error });
        const signal = interrupt();
        signal.throwIfAborted();
        await sleep(this.#clock, pause, signal);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }
}

/** True for troubles after which the same call may go through. */
export function passes(error: unknown): boolean {
  return (
    ErrandError.is(error) &&
    (error.code === "STORE_UNAVAILABLE" || error.code === "STORE_BUSY" || error.code === "STORE_FULL")
  );
}

/** Resolves after `ms`, rejects with the signal's reason when it aborts first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const stop = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = clock.timer(ms, () => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
    signal.addEventListener("abort", stop, { once: true });
  });
}
