import type { RunId, TenantId, ThreadId } from "../domain/id.ts";
import type { LogRow, Store } from "../runtime/ports/store.ts";
import { compareHeld, compareRun, heldByRun } from "../runtime/verify/compare-rows.ts";
import { LogFold } from "../runtime/verify/log-fold.ts";
import type { Problem } from "../runtime/verify/problem.ts";
import { verifyStore } from "../runtime/verify/verify-store.ts";

const PAGE = 500;

/**
 * Follows a store while a test is under way: every new log entry is held against the laws, and the rows of every Run that
 * it touches against the log. Look whenever nothing is in flight, as often as you like; a look costs what is new.
 */
export class InvariantWatch {
  readonly #store: Store;
  readonly #tenant: TenantId;
  readonly #fold: LogFold;
  #found: Problem[] = [];
  #lastSeq = 0;

  constructor(store: Store, tenant: TenantId) {
    this.#store = store;
    this.#tenant = tenant;
    this.#fold = new LogFold((problem) => this.#found.push(problem));
  }

  /** Runs that have not ended, as of the last look. */
  get liveRuns(): number {
    return this.#fold.liveRuns;
  }

  /** Runs seen so far. */
  get runs(): number {
    return this.#fold.rows.runs.size;
  }

  /** Digest of every thread's history, as of the last look; empty where it was erased. */
  get histories(): ReadonlyMap<ThreadId, string> {
    return new Map(
      [...this.#fold.rows.threads].map(([threadId, thread]) => [threadId, thread.historyDigest ?? ""]),
    );
  }

  /**
   * Reads what was committed since the last look.
   * @param each told of every new entry
   * @returns what is wrong, new since the last look
   */
  async look(each: (row: LogRow) => void = () => undefined): Promise<readonly Problem[]> {
    const touched = new Set<RunId>();
    for (;;) {
      const page = await this.#store.readLog(this.#tenant, { all: true }, this.#lastSeq, PAGE);
      for (const row of page) {
        this.#fold.add(row);
        touched.add(row.runId);
        each(row);
      }
      this.#lastSeq = page.at(-1)?.seq ?? this.#lastSeq;
      if (page.length < PAGE) break;
    }
    this.#fold.flush();
    if (touched.size > 0) await this.#compare(touched);
    return this.#found.splice(0);
  }

  async #compare(touched: ReadonlySet<RunId>): Promise<void> {
    const { rows } = this.#fold;
    // A Run's commit may deliver to its parent and pass the lane to the next of its thread.
    const moved = new Set(touched);
    for (const runId of touched) {
      const run = rows.runs.get(runId)?.row;
      if (run === undefined) continue;
      if (run.parentRunId !== null) moved.add(run.parentRunId);
      const holder = rows.threads.get(run.threadId)?.holder ?? null;
      if (holder !== null) moved.add(holder.row.runId);
    }
    const held = heldByRun(rows);
    const add = (problem: Problem): void => void this.#found.push(problem);
    for (const runId of moved) {
      const expected = rows.runs.get(runId);
      compareRun(expected, await this.#store.getRun(this.#tenant, runId), add);
      if (expected === undefined) continue;
      const limit = 1_000_000;
      const delegations = await this.#store.listDelegations(this.#tenant, { parentRunId: runId, limit });
      const inbox = await this.#store.listInbox(this.#tenant, runId);
      const tickets = await this.#store.listTickets(this.#tenant, { runId, limit });
      compareHeld(expected.row, rows, held(runId), { delegations, inbox, tickets }, add);
    }
  }
}

/**
 * Holds everything that a tenant has against the laws, log and rows.
 * @throws Error that lists what is wrong
 */
export async function checkInvariants(store: Store, tenant: TenantId): Promise<void> {
  const { problems } = await verifyStore(store, tenant);
  if (problems.length === 0) return;
  throw new Error(`${problems.length} invariants are broken:\n${problems.map(problemText).join("\n")}`);
}

/** One problem in one line. */
export function problemText({ code, runId, what, expected, found }: Problem): string {
  const shown = (value: unknown): string => JSON.stringify(value) ?? "nothing";
  return `${code}${runId === undefined ? "" : ` ${runId}`}: ${what}: expected ${shown(expected)}, found ${shown(found)}`;
}
