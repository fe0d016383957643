import type { TenantId } from "../../domain/id.ts";
import type { WakeHint } from "../../runtime/ports/store.ts";

type Listener = (hint: WakeHint) => void;

/**
 * Hints about what was committed: told here after each of this process's own commits, and guessed from `data_version`
 * for those of other processes on the file. The poll runs only while somebody listens and keeps no process alive.
 */
export class Wakes {
  readonly #listeners = new Set<{ readonly call: Listener }>();
  readonly #tenants = new Set<TenantId>();
  readonly #pollMs: number;
  readonly #dataVersion: () => number;
  #lastVersion = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param dataVersion changes when another connection has committed; may throw while the file is locked. */
  constructor(pollMs: number, dataVersion: () => number) {
    this.#pollMs = pollMs;
    this.#dataVersion = dataVersion;
  }

  /** Notes a tenant that this process works for: only these are told about other processes' commits. */
  know(tenant: TenantId): void {
    this.#tenants.add(tenant);
  }

  listen(call: Listener): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    if (this.#timer === null && this.#pollMs > 0) {
      this.#lastVersion = this.#version();
      this.#timer = setInterval(this.#poll, this.#pollMs).unref();
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** A listener may fail: its hint is lost, and hints may be lost. */
  tell(hints: readonly WakeHint[]): void {
    if (this.#listeners.size === 0) return;
    for (const hint of hints) {
      for (const listener of this.#listeners) {
        try {
          listener.call(hint);
        } catch {
          // As lost as a hint may be.
        }
      }
    }
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
  }

  readonly #poll = (): void => {
    const version = this.#version();
    if (version === this.#lastVersion) return;
    this.#lastVersion = version;
    for (const tenant of this.#tenants) {
      this.tell([
        { tenant, runId: null, kind: "ready" },
        { tenant, runId: null, kind: "signal" },
        { tenant, runId: null, kind: "ended" },
        { tenant, runId: null, kind: "log" },
      ]);
    }
  };

  #version(): number {
    try {
      return this.#dataVersion();
    } catch {
      return this.#lastVersion;
    }
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
