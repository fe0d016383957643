import type { RunId } from "../../domain/id.ts";

/** What `verify` can find. Those of the log come first, then those of the rows that are derived from it. */
export type ProblemCode =
  /** A body is no list of facts, or has a fact that nobody writes. */
  | "facts_unreadable"
  /** The bodies of a commit do not have the digest that was written with them. */
  | "digest_differs"
  /** Two commits under one operation id (L5). */
  | "operation_repeated"
  /** A thread's versions, or a Run's signals, do not count up by one (L4). */
  | "version_gap"
  | "signal_gap"
  /** A fact about a Run that the log does not create, or that it creates twice. */
  | "run_unknown"
  | "run_created_twice"
  /** The holder's facts from a Run that does not hold its thread's lane (L4), or has ended (L3). */
  | "lane_not_held"
  | "fact_after_end"
  /** A fact that the rules do not allow in the state in which it was written (R1–R4, B1–B5, D1–D5, T1–T4). */
  | "fact_not_allowed"
  /** The history's digest is not that of its messages (L9). */
  | "history_differs"
  /** An end that leaves something open: a call, a ticket, a child that was not asked to stop, an unread result (L11, L17). */
  | "end_incomplete"
  /** An id that is not derived from its call (L12). */
  | "id_not_derived"
  /** A relationship without its child, a child without its relationship, or with another contract (L14, L19). */
  | "child_differs"
  /** A call whose tool must never be repeated was begun twice (L10). */
  | "call_repeated"
  /** Something was authorized that a control had forbidden before (L23). */
  | "control_ignored"
  /** A result was consumed that was not delivered, or without answering its call (L15, L16). */
  | "result_not_delivered"
  /** A row that the log does not call for, one that it calls for and that is missing, or one that says something else. */
  | "row_unexpected"
  | "row_missing"
  | "row_differs"
  /** Content was erased from something that lives, or from a part of a tree (L2). */
  | "erased_wrongly"
  /** An entry of the lifecycle feed is missing, is there twice, or is there although its facts are not of that feed (L7). */
  | "feed_differs"
  /** A Run's publication is missing, or is not what its digest says. */
  | "publication_differs";

export interface Problem {
  readonly code: ProblemCode;
  readonly runId?: RunId;
  /** What was looked at, with its ids. */
  readonly what: string;
  readonly expected: unknown;
  readonly found: unknown;
}

/** Tells a problem with the entry that is being looked at. */
export type Report = (code: ProblemCode, what: string, expected: unknown, found: unknown) => void;

export interface VerifyReport {
  readonly entries: number;
  readonly runs: number;
  /** Runs among them whose content was erased. */
  readonly erased: number;
  /** Trees that were pruned, by their tombstones. */
  readonly pruned: number;
  readonly problems: readonly Problem[];
  /** True if there were more problems than are listed. */
  readonly truncated: boolean;
}
