import { sqliteTrouble, type SqlDatabase, type SqlStatement } from "./sqlite-driver.ts";

/*
 * One writer for one connection.
 *
 * G1 Everything submitted in one tick is written in one transaction: one fsync. A promise settles after COMMIT.
 * G2 A job refuses by its return value, having written nothing. If anything throws, the whole group is rolled back and
 *    its jobs are tried one by one, each failing with its own error.
 * G3 No transaction is open between two turns of the event loop (L6).
 * G4 A lock held by another process is waited for without blocking the event loop, and not for ever.
 */

interface Job {
  readonly apply: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** When it was submitted, on a monotonic clock. */
  readonly since: number;
}

export interface GroupWriterOptions {
  /** How long a job waits for another process's lock before it fails. */
  readonly busyTimeoutMs: number;
  /** Most jobs in one transaction: bounds how long the event loop is held. */
  readonly maxGroup: number;
  /** Called with the lock held, before the first job of a transaction. */
  readonly onBegin: () => void;
  /** Called after COMMIT, once the group's promises are settled. */
  readonly onCommit: () => void;
  /** Called after a rollback: what the jobs had noted down is void. */
  readonly onRollback: () => void;
  /** Turns what the driver threw into the error the caller sees. */
  readonly explain: (error: unknown) => unknown;
}

const FIRST_WAIT_MS = 1;
const LONGEST_WAIT_MS = 50;

/** Stands for SQLite's busy error where the wait for the lock has run out. */
const BUSY = Object.assign(new Error("database is locked"), { code: "ERR_SQLITE_ERROR", errcode: 5 });

export class GroupWriter {
  #queue: Job[] = [];
  #scheduled = false;
  /** Jobs at the head of the queue that are to be tried alone, because their group failed. */
  #alone = 0;
  #waits = 0;
  #idle: (() => void)[] = [];
  readonly #db: SqlDatabase;
  readonly #begin: SqlStatement;
  readonly #commit: SqlStatement;
  readonly #options: GroupWriterOptions;

  constructor(db: SqlDatabase, options: GroupWriterOptions) {
    this.#db = db;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#options = options;
  }

  submit<T>(apply: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({
        apply,
        resolve: resolve as (value: unknown) => void,
        reject,
        since: performance.now(),
      });
      this.#schedule();
    });
  }

  /** Settles once everything submitted so far is written or has failed. */
  async drain(): Promise<void> {
    if (this.#queue.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    const size = this.#alone > 0 ? 1 : Math.min(this.#queue.length, this.#options.maxGroup);
    const outcome = this.#write(this.#queue.slice(0, size));
    if (outcome === "busy") {
      this.#waitForLock();
      return;
    }
    this.#waits = 0;
    if (outcome === "split") {
      this.#alone = size;
    } else {
      this.#queue.splice(0, size);
      if (this.#alone > 0) this.#alone -= 1;
    }
    if (this.#queue.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
    if (outcome === "written") this.#options.onCommit();
  };

  #write(jobs: readonly Job[]): "written" | "failed" | "split" | "busy" {
    const results: unknown[] = [];
    try {
      this.#begin.run();
      this.#options.onBegin();
      for (const job of jobs) results.push(job.apply());
      this.#commit.run();
    } catch (error) {
      this.#rollback();
      if (sqliteTrouble(error) === "busy") return "busy";
      if (jobs.length > 1) return "split";
      jobs[0]?.reject(this.#options.explain(error));
      return "failed";
    }
    for (let at = 0; at < jobs.length; at++) jobs[at]?.resolve(results[at]);
    return "written";
  }

  #rollback(): void {
    try {
      this.#db.exec("ROLLBACK");
    } catch {
      // BEGIN did not succeed, or SQLite has rolled back by itself.
    }
    this.#options.onRollback();
  }

  #waitForLock(): void {
    const deadline = performance.now() - this.#options.busyTimeoutMs;
    const late = this.#queue.findIndex((job) => job.since > deadline);
    const failed = this.#queue.splice(0, late === -1 ? this.#queue.length : late);
    this.#alone = Math.max(0, this.#alone - failed.length);
    if (failed.length > 0) {
      const error = this.#options.explain(BUSY);
      for (const job of failed) job.reject(error);
    }
    if (this.#queue.length === 0) {
      this.#waits = 0;
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#waits++);
    this.#scheduled = true;
    setTimeout(this.#flush, longest * (0.5 + Math.random() / 2));
  }
}
