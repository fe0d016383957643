import type { Clock } from "../runtime/ports/clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * Time for a whole simulation in one process: it stands still until it is moved, and it is moved from timer to timer.
 * Give it to a store, to workers and to whatever else of yours takes a clock; then alternate `settled()` and
 * `advanceToNext()`. Two timers for the same moment run in the order in which they were set, so a run can be repeated.
 */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  /** Latest first: the next timer is at the end. */
  readonly #timers: Timer[] = [];

  /** @param start milliseconds since the epoch at which it begins */
  constructor(start = 1_700_000_000_000) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  timer(delayMs: number, run: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#timers[middle];
      if (other !== undefined && other.at > timer.at) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at >= 0) this.#timers.splice(at, 1);
    };
  }

  /** Waits `ms` of this clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.timer(ms, resolve));
  }

  /** When the next timer is due; null if there is none. */
  get nextAt(): number | null {
    return this.#timers.at(-1)?.at ?? null;
  }

  /** Moves to the next timer and runs it. False if there is none. */
  advanceToNext(): boolean {
    const timer = this.#timers.pop();
    if (timer === undefined) return false;
    this.#now = Math.max(this.#now, timer.at);
    timer.run();
    return true;
  }

  /** Moves by `ms` and runs every timer on the way, each at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    while (this.nextAt !== null && this.nextAt <= end) this.advanceToNext();
    this.#now = end;
  }
}

/**
 * Resolves once this process has nothing left to do without time passing: every promise that could settle has, and no
 * immediate is queued. What waits for the network, a file or a real timer is not waited for.
 */
export async function settled(): Promise<void> {
  do {
    await new Promise<void>((resolve) => void setImmediate(resolve));
  } while (process.getActiveResourcesInfo().includes("Immediate"));
}
