import type { RunId, ThreadId } from "../../domain/id.ts";
import type { LogRow, LogScope } from "../../runtime/ports/store.ts";
import { erasureMark } from "../../runtime/ports/erasure.ts";
import { bucket, type Mutable } from "./row.ts";

/** The log of one tenant, indexed by Run, thread and tree. Only erasure changes a row; readers get copies. */
export class FactLog {
  #all: LogRow[] = [];
  readonly #byRun = new Map<RunId, LogRow[]>();
  readonly #byThread = new Map<ThreadId, LogRow[]>();
  readonly #byRoot = new Map<RunId, LogRow[]>();
  readonly #signals = new Map<RunId, LogRow[]>();

  append(row: LogRow): void {
    this.#all.push(row);
    bucket(this.#byRun, row.runId).push(row);
    bucket(this.#byThread, row.threadId).push(row);
    bucket(this.#byRoot, row.rootRunId).push(row);
    if (row.source === "signal" && row.signal > 0) bucket(this.#signals, row.runId).push(row);
  }

  read(scope: LogScope, afterSeq: number, limit: number): LogRow[] {
    return slice(this.#rows(scope), (row) => row.seq > afterSeq, limit);
  }

  signalsAfter(runId: RunId, signal: number): LogRow[] {
    const rows = this.#signals.get(runId) ?? [];
    return slice(rows, (row) => row.signal > signal, rows.length);
  }

  get size(): number {
    return this.#all.length;
  }

  /** Replaces the bodies of a tree's entries, here and in the feed that shares them. */
  erase(rootRunId: RunId): void {
    for (const row of this.#byRoot.get(rootRunId) ?? []) {
      (row as Mutable<LogRow>).body = erasureMark(row.body);
    }
  }

  /** Removes the entries of these trees and answers them. */
  remove(roots: ReadonlySet<RunId>): readonly LogRow[] {
    const gone = [...roots].flatMap((root) => this.#byRoot.get(root) ?? []);
    for (const row of gone) {
      this.#byRun.delete(row.runId);
      this.#byThread.delete(row.threadId);
      this.#byRoot.delete(row.rootRunId);
      this.#signals.delete(row.runId);
    }
    if (gone.length > 0) this.#all = this.#all.filter((row) => !roots.has(row.rootRunId));
    return gone;
  }

  #rows(scope: LogScope): readonly LogRow[] {
    if ("runId" in scope) return this.#byRun.get(scope.runId) ?? [];
    if ("threadId" in scope) return this.#byThread.get(scope.threadId) ?? [];
    if ("rootRunId" in scope) return this.#byRoot.get(scope.rootRunId) ?? [];
    return this.#all;
  }
}

/** Copies of the first `limit` rows of an ordered list from the first one that is `past`. */
function slice(rows: readonly LogRow[], past: (row: LogRow) => boolean, limit: number): LogRow[] {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row !== undefined && past(row)) high = middle;
    else low = middle + 1;
  }
  return rows.slice(low, low + Math.max(0, limit)).map((row) => ({ ...row }));
}
