import type { Database } from "./database.ts";

/** How long a measured offset is used before it is measured again. */
const FRESH_MS = 30_000;

/**
 * The database's clock as this process sees it: its own, corrected by the offset that was measured last. Nothing is
 * compared with it that is committed; for that the database reads its clock itself.
 */
export class DatabaseClock {
  readonly #database: Database;
  #offsetMs = 0;
  #measuredAt = Number.NEGATIVE_INFINITY;
  #measuring = false;

  private constructor(database: Database) {
    this.#database = database;
  }

  static async read(database: Database): Promise<DatabaseClock> {
    const clock = new DatabaseClock(database);
    await clock.#measure();
    return clock;
  }

  now(): number {
    const isStale = performance.now() - this.#measuredAt > FRESH_MS;
    if (isStale && !this.#measuring) void this.#measure().catch(() => undefined);
    return Math.floor(Date.now() + this.#offsetMs);
  }

  async #measure(): Promise<void> {
    this.#measuring = true;
    try {
      const before = Date.now();
      const [row] = await this.#database.call<{ readonly now: number }>("clock", []);
      const after = Date.now();
      if (row !== undefined) this.#offsetMs = row.now - (before + after) / 2;
      this.#measuredAt = performance.now();
    } finally {
      this.#measuring = false;
    }
  }
}
