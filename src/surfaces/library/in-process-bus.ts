import type { LiveBus, TaggedDelta } from "../../runtime/ports/live-bus.ts";

/** Live deltas inside one process. A listener that throws is dropped from that delta only. */
export class InProcessBus implements LiveBus {
  readonly #listeners = new Set<(delta: TaggedDelta) => void>();

  publish(delta: TaggedDelta): void {
    for (const listener of this.#listeners) {
      try {
        listener(delta);
      } catch {
        // Best effort by contract: a broken listener must not stop the run that is being watched.
      }
    }
  }

  subscribe(listener: (delta: TaggedDelta) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
