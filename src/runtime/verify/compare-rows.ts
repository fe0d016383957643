import type { DelegationRow, InboxRow, RunRow, TicketRow } from "../ports/store.ts";
import type { ExpectedRows, ExpectedRun } from "./expected.ts";
import type { Problem } from "./problem.ts";

/** What differs between rows as they are and rows as the log tells them. Pure. */
type Add = (found: Problem) => void;

const RUN_FIELDS = [
  "runId",
  "rootRunId",
  "parentRunId",
  "threadId",
  "delegationId",
  "agent",
  "publication",
  "depth",
  "priority",
  "lane",
  "version",
  "signalSeq",
  "controlSeq",
  "createdAt",
  "endedAt",
  "summary",
] as const satisfies readonly (keyof ExpectedRun["row"])[];

export function compareRun(expected: ExpectedRun | undefined, found: RunRow | null, add: Add): void {
  if (expected === undefined || found === null) {
    if (found !== null)
      add({
        code: "row_unexpected",
        runId: found.runId,
        what: "run row",
        expected: null,
        found: found.state,
      });
    else if (expected !== undefined) {
      const { runId } = expected.row;
      add({ code: "row_missing", runId, what: "run row", expected: expected.states, found: null });
    }
    return;
  }
  const { runId } = expected.row;
  differences(RUN_FIELDS, expected.row, found, (field, was, is) =>
    add({ code: "row_differs", runId, what: `run row, ${field}`, expected: was, found: is }),
  );
  if (!expected.states.includes(found.state)) {
    add({
      code: "row_differs",
      runId,
      what: "run row, state",
      expected: expected.states,
      found: found.state,
    });
  }
  if ((found.claimedBy !== null) !== (found.state === "running")) {
    const claimed = found.state === "running" ? "a claim" : null;
    add({
      code: "row_differs",
      runId,
      what: "run row, claimedBy",
      expected: claimed,
      found: found.claimedBy,
    });
  }
  const parked = found.state === "waiting" || found.state === "awaiting" || found.state === "paused";
  if (parked && expected.dueAt !== undefined && found.dueAt !== expected.dueAt) {
    add({ code: "row_differs", runId, what: "run row, dueAt", expected: expected.dueAt, found: found.dueAt });
  }
}

const DELEGATION_FIELDS = [
  "delegationId",
  "rootRunId",
  "parentRunId",
  "childRunId",
  "step",
  "index",
  "target",
  "status",
  "contractVersion",
  "contractDigest",
  "intentDelivered",
] as const satisfies readonly (keyof DelegationRow)[];

const INBOX_FIELDS = [
  "delegationId",
  "parentRunId",
  "childRunId",
  "kind",
  "digest",
  "body",
] as const satisfies readonly (keyof InboxRow)[];

const TICKET_FIELDS = [
  "ticketId",
  "runId",
  "rootRunId",
  "kind",
  "status",
  "openedAt",
  "deadlineAt",
  "body",
  "decisionId",
  "decisionDigest",
  "closeReason",
] as const satisfies readonly (keyof TicketRow)[];

/** Relationships, envelopes and tickets of one Run. */
export function compareHeld(
  run: ExpectedRun["row"],
  expected: ExpectedRows,
  ids: HeldIds,
  found: {
    readonly delegations: readonly DelegationRow[];
    readonly inbox: readonly InboxRow[];
    readonly tickets: readonly TicketRow[];
  },
  add: Add,
): void {
  const { runId } = run;
  compareAll(
    "delegation row",
    DELEGATION_FIELDS,
    ids.delegations,
    expected.delegations,
    found.delegations,
    (row) => row.delegationId,
  );
  compareAll(
    "ticket row",
    TICKET_FIELDS,
    ids.tickets,
    expected.tickets,
    found.tickets,
    (row) => row.ticketId,
  );
  compareAll("inbox row", INBOX_FIELDS, ids.inbox, expected.inbox, found.inbox, (row) => row.delegationId);
  for (const row of found.inbox) {
    const was = expected.inbox.get(row.delegationId);
    // That news of a wait was read is no fact; that a result was, is.
    const read = row.kind !== "result" && row.status === "consumed" && was?.status === "unread";
    if (was === undefined || was.status === row.status || read) continue;
    const what = `inbox row ${row.delegationId}, status`;
    add({ code: "row_differs", runId, what, expected: was.status, found: row.status });
  }

  function compareAll<Id extends string, Row extends object>(
    what: string,
    fields: readonly (keyof Row & string)[],
    wanted: readonly Id[],
    rows: ReadonlyMap<Id, Partial<Row>>,
    are: readonly Row[],
    idOf: (row: Row) => Id,
  ): void {
    const left = new Set<Id>(wanted);
    for (const row of are) {
      const id = idOf(row);
      const was = left.delete(id) ? rows.get(id) : undefined;
      if (was === undefined) {
        add({ code: "row_unexpected", runId, what: `${what} ${id}`, expected: null, found: row });
        continue;
      }
      differences(fields, was, row, (field, from, is) =>
        add({ code: "row_differs", runId, what: `${what} ${id}, ${field}`, expected: from, found: is }),
      );
    }
    for (const id of left) {
      add({ code: "row_missing", runId, what: `${what} ${id}`, expected: rows.get(id), found: null });
    }
  }
}

/** What the log says that one Run holds. */
export interface HeldIds {
  readonly delegations: readonly DelegationRow["delegationId"][];
  readonly inbox: readonly InboxRow["delegationId"][];
  readonly tickets: readonly TicketRow["ticketId"][];
}

const HOLDS_NOTHING: HeldIds = { delegations: [], inbox: [], tickets: [] };

/** What every Run holds, from the expected rows of all. */
export function heldByRun(expected: ExpectedRows): (runId: string) => HeldIds {
  const held = new Map<
    string,
    {
      delegations: HeldIds["delegations"][number][];
      inbox: HeldIds["inbox"][number][];
      tickets: HeldIds["tickets"][number][];
    }
  >();
  const of = (runId: string) => {
    let ids = held.get(runId);
    if (ids === undefined) {
      ids = { delegations: [], inbox: [], tickets: [] };
      held.set(runId, ids);
    }
    return ids;
  };
  for (const row of expected.delegations.values()) of(row.parentRunId).delegations.push(row.delegationId);
  for (const row of expected.inbox.values()) of(row.parentRunId).inbox.push(row.delegationId);
  for (const row of expected.tickets.values()) of(row.runId).tickets.push(row.ticketId);
  return (runId) => held.get(runId) ?? HOLDS_NOTHING;
}

function differences<Row extends object>(
  fields: readonly (keyof Row & string)[],
  expected: Partial<Row>,
  found: Row,
  tell: (field: string, expected: unknown, found: unknown) => void,
): void {
  for (const field of fields)
    if (expected[field] !== found[field]) tell(field, expected[field], found[field]);
}
