import type { WakeHint } from "../../runtime/ports/store.ts";

/** Tells listeners what has happened, once the call that did it is over. Hints prove nothing, so a listener may fail. */
export class WakeHub {
  readonly #listeners = new Set<{ readonly call: (hint: WakeHint) => void }>();

  listen(call: (hint: WakeHint) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  tell(hints: readonly WakeHint[]): void {
    if (this.#listeners.size === 0 || hints.length === 0) return;
    queueMicrotask(() => {
      for (const hint of hints) {
        for (const listener of this.#listeners) {
          try {
            listener.call(hint);
          } catch {
            // Dropped like a lost hint: the work is found by its due time.
          }
        }
      }
    });
  }

  clear(): void {
    this.#listeners.clear();
  }
}
