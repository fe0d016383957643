import type { RunId } from "../../domain/id.ts";
import { isErased } from "../ports/erasure.ts";
import type { DelegationRow, InboxRow, LogRow, RunRow, TicketRow } from "../ports/store.ts";
import type { ExpectedRows, ExpectedThread } from "./expected.ts";
import type { Problem, Report } from "./problem.ts";

/** What the log still says of a Run whose content was erased. */
interface ErasedRun {
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly threadId: LogRow["threadId"];
  readonly createdAt: number;
  version: number;
  /** Of the last entry of a lane's holder, which was its end. */
  endedAt: number | null;
}

/** The Runs whose content was erased. Only whole trees that have ended may be (L2). */
export class ErasedRuns {
  readonly runs = new Map<RunId, ErasedRun>();
  readonly roots = new Set<RunId>();
  /** Their entries: whether one belongs into the lifecycle feed is not to be told any more. */
  readonly entries = new Set<number>();

  /**
   * Notes an entry of an erased Run and answers true; false for one whose facts are there. What is readable of an erased
   * Run must have come after its end, from others.
   */
  takes(row: LogRow, rows: ExpectedRows, thread: ExpectedThread, report: Report): boolean {
    const { runId, source } = row;
    if (!isErased(row.body)) {
      if (!this.runs.has(runId)) return false;
      if (source === "lane" || row.signal === 0) {
        report("erased_wrongly", `facts of ${runId}`, "all erased", "some");
      }
      this.entries.add(row.seq);
      return true;
    }
    if (rows.runs.has(runId)) report("erased_wrongly", `facts of ${runId}`, "none erased", "some");
    this.#add(row);
    thread.historyDigest = null;
    if (source !== "lane") return true;
    if (row.version !== thread.version + 1) {
      report("version_gap", `thread ${row.threadId}`, thread.version + 1, row.version);
    }
    thread.version = row.version;
    return true;
  }

  #add(row: LogRow): void {
    let run = this.runs.get(row.runId);
    if (run === undefined) {
      const { runId, rootRunId, threadId, at } = row;
      run = { runId, rootRunId, threadId, createdAt: at, version: row.version, endedAt: null };
      this.runs.set(runId, run);
    }
    this.roots.add(row.rootRunId);
    this.entries.add(row.seq);
    if (row.source !== "lane") return;
    run.version = row.version;
    run.endedAt = row.at;
  }
}

/** What differs between the rows of an erased Run and what is left of its log. */
export function erasedProblems(
  expected: ErasedRun,
  found: {
    readonly row: RunRow | null;
    readonly delegations: readonly DelegationRow[];
    readonly inbox: readonly InboxRow[];
    readonly tickets: readonly TicketRow[];
  },
): Problem[] {
  const { runId } = expected;
  const problems: Problem[] = [];
  const wrong = (what: string, wanted: unknown, is: unknown): void =>
    void problems.push({ code: "erased_wrongly", runId, what, expected: wanted, found: is });
  const { row } = found;
  if (row === null) {
    return [{ code: "row_missing", runId, what: "run row", expected: "of an erased run", found: null }];
  }
  for (const field of ["rootRunId", "threadId", "createdAt", "version", "endedAt"] as const) {
    if (row[field] !== expected[field]) wrong(`run row, ${field}`, expected[field], row[field]);
  }
  if (row.state !== "ended") wrong("run row, state", "ended", row.state);
  if (!isErased(row.summary)) wrong("run row, summary", "an erasure mark", row.summary);
  for (const one of found.inbox) {
    if (!isErased(one.body)) wrong(`inbox row ${one.delegationId}`, "an erasure mark", one.body);
    if (one.status === "unread") wrong(`inbox row ${one.delegationId}`, "read", one.status);
  }
  for (const one of found.tickets) {
    if (!isErased(one.body)) wrong(`ticket row ${one.ticketId}`, "an erasure mark", one.body);
    if (one.status === "open") wrong(`ticket row ${one.ticketId}`, "closed", one.status);
  }
  for (const one of found.delegations) {
    const isPending = one.status === "cancel_requested" && !one.intentDelivered;
    if (isPending) wrong(`delegation row ${one.delegationId}`, "its intent delivered", one.status);
  }
  return problems;
}
