import type { Clock } from "../../src/runtime/ports/clock.ts";
import type { ReplayPolicy } from "../../src/domain/tool-batch/call-request.ts";

export interface Counted {
  readonly tool: string;
  readonly replay: ReplayPolicy;
  /** Requests that arrived. */
  requests: number;
  /** Times that something changed in the world. */
  applied: number;
}

/** The world outside: it counts what reaches it, whoever sends it. */
export class FakeService {
  readonly counts = new Map<string, Counted>();
  /** Every request in the order in which it arrived. */
  readonly trace: string[] = [];
  readonly #clock: Clock;
  /** Told of every request as it arrives. */
  readonly #onRequest: (key: string) => void;

  constructor(clock: Clock, onRequest: (key: string) => void) {
    this.#clock = clock;
    this.#onRequest = onRequest;
  }

  request(key: string, tool: string, replay: ReplayPolicy): void {
    this.#onRequest(key);
    this.trace.push(`${this.#clock.now()} ${tool} ${key}`);
    let counted = this.counts.get(key);
    if (counted === undefined) {
      counted = { tool, replay, requests: 0, applied: 0 };
      this.counts.set(key, counted);
    }
    counted.requests += 1;
    // Under an effect key the world changes once; without one every request changes it.
    if (replay === "never" || counted.applied === 0) counted.applied += 1;
  }

  knows(key: string): boolean {
    return this.counts.has(key);
  }
}
