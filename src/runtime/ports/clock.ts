/** Time as a port: production takes the machine's, tests a virtual one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never jump; only differences mean something. Leases are judged by it just before an effect (L10). */
  monotonic(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. */
  timer(delayMs: number, run: () => void): () => void;
}
