import type { PostgresListener } from "../../sql/postgres-driver.ts";
import { quoted } from "./statements.ts";

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;

/**
 * A connection of its own that listens for notifications. It needs a session, so it goes past a transaction-mode pooler;
 * when it breaks it is made again, and whoever listens is told that something may have been missed.
 */
export class NotificationListener {
  readonly #open: () => PostgresListener;
  readonly #channel: string;
  readonly #onPayload: (payload: string) => void;
  readonly #onMissed: () => void;
  #client: PostgresListener | null = null;
  #timer: NodeJS.Timeout | null = null;
  #failures = 0;
  #closed = false;

  constructor(parts: {
    readonly open: () => PostgresListener;
    readonly channel: string;
    readonly onPayload: (payload: string) => void;
    readonly onMissed: () => void;
  }) {
    this.#open = parts.open;
    this.#channel = parts.channel;
    this.#onPayload = parts.onPayload;
    this.#onMissed = parts.onMissed;
  }

  /** Settles once it listens, or has failed for the first time and goes on trying. */
  async start(): Promise<void> {
    const client = this.#open();
    this.#client = client;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      void client.end().catch(() => undefined);
      if (this.#client === client) this.#retry();
    };
    client.on("error", over);
    client.on("end", over);
    client.on("notification", ({ payload }) => {
      if (payload !== undefined && !this.#closed) this.#onPayload(payload);
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${quoted(this.#channel)}`);
      if (this.#failures > 0) this.#onMissed();
      this.#failures = 0;
    } catch {
      over();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }

  #retry(): void {
    this.#client = null;
    if (this.#closed) return;
    this.#failures += 1;
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#failures - 1, 10));
    this.#timer = setTimeout(() => void this.start(), longest * (0.5 + Math.random() / 2)).unref();
  }
}
