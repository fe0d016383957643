import type { RunId, TenantId } from "../../domain/id.ts";
import { decodePublication, publicationRef } from "../catalog/publication.ts";
import { isErased } from "../ports/erasure.ts";
import type { RunRow, Store } from "../ports/store.ts";
import { compareHeld, compareRun, heldByRun } from "./compare-rows.ts";
import { erasedProblems } from "./erased-runs.ts";
import { LogFold } from "./log-fold.ts";
import type { Problem, VerifyReport } from "./problem.ts";

export interface VerifyOptions {
  /** Told now and then how far it is. */
  readonly progress?: (at: { readonly phase: "log" | "rows" | "feed"; readonly done: number }) => void;
  /** Problems listed at most; default 1,000. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

const PAGE = 500;
const ALL = 2 ** 31 - 1;
/** How often a Run that differs is looked at again, in case it has just moved. */
const SECOND_LOOKS = 5;

/**
 * Rebuilds every row of a tenant from its log alone and tells every difference, and whatever in the log itself the rules
 * do not allow (L2). It only reads, in pages, and may look at a store on which others are at work.
 */
export async function verifyStore(
  store: Store,
  tenant: TenantId,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  return new Verification(store, tenant, options).run();
}

class Verification {
  readonly #store: Store;
  readonly #tenant: TenantId;
  readonly #options: VerifyOptions;
  readonly #limit: number;
  readonly #problems: Problem[] = [];
  readonly #fold: LogFold;
  #lastSeq = 0;
  #truncated = false;

  constructor(store: Store, tenant: TenantId, options: VerifyOptions) {
    this.#store = store;
    this.#tenant = tenant;
    this.#options = options;
    this.#limit = options.limit ?? 1_000;
    this.#fold = new LogFold((found) => this.#add(found));
  }

  async run(): Promise<VerifyReport> {
    await this.#readLog();
    await this.#checkRows();
    await this.#checkFeed();
    await this.#checkPublications();
    this.#checkErasedTrees();
    const pruned = await this.#checkTombstones();
    const { entries, erased } = this.#fold;
    return {
      entries,
      runs: this.#fold.rows.runs.size + erased.runs.size,
      erased: erased.runs.size,
      pruned,
      problems: this.#problems,
      truncated: this.#truncated,
    };
  }

  #add(found: Problem): void {
    if (this.#problems.length < this.#limit) this.#problems.push(found);
    else this.#truncated = true;
  }

  /** Reads on to the end of the log as it is now. */
  async #readLog(): Promise<void> {
    for (;;) {
      this.#options.signal?.throwIfAborted();
      const page = await this.#store.readLog(this.#tenant, { all: true }, this.#lastSeq, PAGE);
      for (const row of page) this.#fold.add(row);
      this.#lastSeq = page.at(-1)?.seq ?? this.#lastSeq;
      this.#options.progress?.({ phase: "log", done: this.#fold.entries });
      if (page.length < PAGE) break;
    }
    this.#fold.flush();
  }

  async #checkRows(): Promise<void> {
    const { runs } = this.#fold.rows;
    const seen = new Set<RunId>();
    const moved: RunId[] = [];
    let held = heldByRun(this.#fold.rows);
    for (let offset = 0; ; offset += PAGE) {
      this.#options.signal?.throwIfAborted();
      const page = await this.#store.listRuns(this.#tenant, { order: "oldest", limit: PAGE, offset });
      for (const row of page) {
        seen.add(row.runId);
        if ((await this.#differences(row, held)).length > 0) moved.push(row.runId);
      }
      this.#options.progress?.({ phase: "rows", done: offset + page.length });
      if (page.length < PAGE) break;
    }
    const known = [...runs.keys(), ...this.#fold.erased.runs.keys()];
    for (const runId of known) if (!seen.has(runId)) moved.push(runId);
    for (let looks = 0; moved.length > 0 && looks < SECOND_LOOKS; looks++) {
      const before = new Map<RunId, RunRow | null>();
      for (const runId of moved) before.set(runId, await this.#store.getRun(this.#tenant, runId));
      await this.#readLog();
      held = heldByRun(this.#fold.rows);
      for (const runId of moved.splice(0)) {
        const row = await this.#store.getRun(this.#tenant, runId);
        const found = await this.#differences(row ?? runId, held);
        const still = sameMoment(before.get(runId) ?? null, row);
        if (found.length === 0 || (await this.#wasTakenAway(runId, row))) continue;
        if (!still && looks + 1 < SECOND_LOOKS) moved.push(runId);
        else for (const one of found) this.#add(one);
      }
    }
  }

  /** @param row or the id of a Run that has none */
  async #differences(row: RunRow | RunId, held: ReturnType<typeof heldByRun>): Promise<Problem[]> {
    const found: Problem[] = [];
    const add = (one: Problem): void => void found.push(one);
    const runId = typeof row === "string" ? row : row.runId;
    const is = typeof row === "string" ? null : row;
    const { rows, erased } = this.#fold;
    const gone = erased.runs.get(runId);
    const expected = rows.runs.get(runId);
    if (gone === undefined) compareRun(expected, is, add);
    if (gone === undefined && expected === undefined) return found;
    const limit = ALL;
    const delegations = await this.#store.listDelegations(this.#tenant, { parentRunId: runId, limit });
    const inbox = await this.#store.listInbox(this.#tenant, runId);
    const tickets = await this.#store.listTickets(this.#tenant, { runId, limit });
    if (gone !== undefined) return erasedProblems(gone, { row: is, delegations, inbox, tickets });
    if (expected !== undefined) {
      compareHeld(expected.row, rows, held(runId), { delegations, inbox, tickets }, add);
    }
    return found;
  }

  /** Whether the Run's tree was pruned, or erased, since its log was read. */
  async #wasTakenAway(runId: RunId, row: RunRow | null): Promise<boolean> {
    const { rows, erased } = this.#fold;
    const rootRunId = (rows.runs.get(runId)?.row ?? erased.runs.get(runId))?.rootRunId;
    if (rootRunId === undefined || (row !== null && !isErased(row.summary))) return false;
    const log = await this.#store.readLog(this.#tenant, { rootRunId }, 0, ALL);
    if (row !== null) return log.every((entry) => isErased(entry.body));
    if (log.length > 0) return false;
    const tombstones = await this.#store.operations.listTombstones(this.#tenant, ALL);
    return tombstones.some((one) => one.rootRunId === rootRunId);
  }

  /** A tree is erased whole. */
  #checkErasedTrees(): void {
    const { rows, erased } = this.#fold;
    for (const { row } of rows.runs.values()) {
      if (!erased.roots.has(row.rootRunId)) continue;
      const what = `tree of ${row.rootRunId}`;
      this.#add({ code: "erased_wrongly", runId: row.runId, what, expected: "all erased", found: "some" });
    }
  }

  /** Nothing is left of a pruned tree but its tombstone, unless it was started anew. */
  async #checkTombstones(): Promise<number> {
    const tombstones = await this.#store.operations.listTombstones(this.#tenant, ALL);
    for (const { rootRunId, prunedAt } of tombstones) {
      this.#options.signal?.throwIfAborted();
      const left = await this.#store.listRuns(this.#tenant, { rootRunId, order: "oldest", limit: 1 });
      const [row] = left;
      if (row === undefined || row.createdAt >= prunedAt) continue;
      const what = `tree of ${rootRunId}, which was pruned`;
      this.#add({ code: "row_unexpected", runId: row.runId, what, expected: null, found: row.state });
    }
    return tombstones.length;
  }

  /** Every entry of the feed once, in whatever order: of entries that were under way at once a store may tell any first. */
  async #checkFeed(): Promise<void> {
    const left = new Set(this.#fold.lifecycle);
    const differs = (expected: unknown, found: unknown): void =>
      this.#add({ code: "feed_differs", what: "lifecycle feed", expected, found });
    for (let cursor: string | null = null, done = 0; ; ) {
      this.#options.signal?.throwIfAborted();
      const page = await this.#store.readFeed(this.#tenant, "lifecycle", cursor, PAGE);
      for (const { seq } of page.entries) {
        if (seq > this.#lastSeq || left.delete(seq)) continue; // or committed since the log was read
        if (this.#fold.erased.entries.has(seq)) continue;
        differs("an entry of the feed, once", seq);
        return;
      }
      cursor = page.cursor;
      done += page.entries.length;
      this.#options.progress?.({ phase: "feed", done });
      if (page.entries.length < PAGE) break;
    }
    for (const seq of left) {
      if (await this.#wasPruned(seq)) continue;
      differs(seq, "no such entry");
      return;
    }
  }

  /** Whether a log entry has gone since the log was read. */
  async #wasPruned(seq: number): Promise<boolean> {
    const [entry] = await this.#store.readLog(this.#tenant, { all: true }, seq - 1, 1);
    return entry?.seq !== seq;
  }

  /** A Run without its publication can be carried by nobody, and one whose text has changed is not what was agreed. */
  async #checkPublications(): Promise<void> {
    const checked = new Set<string>();
    for (const { row } of this.#fold.rows.runs.values()) {
      if (checked.has(row.publication)) continue;
      checked.add(row.publication);
      const found = await this.#store.getPublication(this.#tenant, row.publication);
      const { ref: _, ...content } = found === null ? { ref: null } : decodePublication(found.body);
      const ref = found === null ? null : publicationRef(content as Parameters<typeof publicationRef>[0]);
      if (ref === row.publication) continue;
      const { runId, publication } = row;
      this.#add({
        code: "publication_differs",
        runId,
        what: "publication",
        expected: publication,
        found: ref,
      });
    }
  }
}

/** Nothing was committed between two looks at a row. */
function sameMoment(before: RunRow | null, after: RunRow | null): boolean {
  if (before === null || after === null) return before === after;
  return (
    before.version === after.version && before.signalSeq === after.signalSeq && before.state === after.state
  );
}
