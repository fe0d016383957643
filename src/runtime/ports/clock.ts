/** Time as a port: production takes the machine's, tests a virtual one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. A timer never keeps the process alive. */
  timer(delayMs: number, run: () => void): () => void;
}
