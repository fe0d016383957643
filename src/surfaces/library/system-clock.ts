import { performance } from "node:perf_hooks";
import type { Clock } from "../../runtime/ports/clock.ts";

/** The machine's clock. Its timers keep the process alive until they fire or are canceled: an open Errand is at work. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer: (delayMs, run) => {
    const handle = setTimeout(run, Math.min(delayMs, 2_147_483_647));
    return () => clearTimeout(handle);
  },
};
