import type { TenantId } from "../../domain/id.ts";
import type { WakeHint } from "../../runtime/ports/store.ts";

type Listener = (hint: WakeHint) => void;
type Kind = WakeHint["kind"];

/** Work is told soon, what only watchers wait for a little later; both as one notification a tenant. */
const URGENT_MS = 3;
const PATIENT_MS = 20;

const CODES = { ready: "r", signal: "s", ended: "e", log: "l" } as const satisfies Record<Kind, string>;

/**
 * Hints about what was committed: told here at once, and to other processes by a notification that is sent outside the
 * commits, a few milliseconds later, for all of them together. Nobody depends on it.
 */
export class Wakes {
  readonly #listeners = new Set<{ readonly call: Listener }>();
  readonly #tenants = new Set<TenantId>();
  readonly #origin: string;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #waiting = new Map<TenantId, Set<Kind>>();
  #timer: NodeJS.Timeout | null = null;
  #sending = false;
  #urgent = false;
  #closed = false;

  /** @param send notifies the other processes; may fail. @param origin tells this store's own notifications apart. */
  constructor(origin: string, send: (payload: string) => Promise<unknown>) {
    this.#origin = origin;
    this.#send = send;
  }

  /** Notes a tenant that this process works for: told when notifications may have been lost. */
  know(tenant: TenantId): void {
    this.#tenants.add(tenant);
  }

  listen(call: Listener): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Tells this process, and later the others. */
  tell(tenant: TenantId, hints: readonly WakeHint[]): void {
    this.#tellHere(hints);
    if (this.#closed || hints.length === 0) return;
    let kinds = this.#waiting.get(tenant);
    if (kinds === undefined) {
      kinds = new Set();
      this.#waiting.set(tenant, kinds);
    }
    for (const { kind } of hints) kinds.add(kind);
    this.#schedule(kinds.has("ready") || kinds.has("signal"));
  }

  /** What another process has notified. */
  receive(payload: string): void {
    const [origin, tenant, codes] = payload.split(" ");
    if (origin === this.#origin || tenant === undefined || codes === undefined) return;
    const kinds = (Object.keys(CODES) as Kind[]).filter((kind) => codes.includes(CODES[kind]));
    this.#tellHere(kinds.map((kind) => ({ tenant: tenant as TenantId, runId: null, kind })));
  }

  /** Notifications may have been lost: anything may have happened. */
  missed(): void {
    for (const tenant of this.#tenants) {
      for (const kind of Object.keys(CODES) as Kind[]) this.#tellHere([{ tenant, runId: null, kind }]);
    }
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    this.#waiting.clear();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** A listener may fail: its hint is lost, and hints may be lost. */
  #tellHere(hints: readonly WakeHint[]): void {
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

  #schedule(urgent: boolean): void {
    if (this.#sending) return;
    if (this.#timer !== null) {
      if (!urgent || this.#urgent) return;
      clearTimeout(this.#timer);
    }
    this.#urgent = urgent;
    this.#timer = setTimeout(this.#flush, urgent ? URGENT_MS : PATIENT_MS).unref();
  }

  readonly #flush = (): void => {
    this.#timer = null;
    this.#sending = true;
    const sent = [...this.#waiting].map(([tenant, kinds]) => {
      const codes = [...kinds].map((kind) => CODES[kind]).join("");
      return this.#send(`${this.#origin} ${tenant} ${codes}`).catch(() => undefined);
    });
    this.#waiting.clear();
    void Promise.all(sent).then(() => {
      this.#sending = false;
      if (this.#closed || this.#waiting.size === 0) return;
      const kinds = [...this.#waiting.values()];
      this.#schedule(kinds.some((set) => set.has("ready") || set.has("signal")));
    });
  };
}
