import { type Usage, addUsage } from "../../domain/budget/usage.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { DelegationId, PublicationRef, RunId, TenantId, ThreadId } from "../../domain/id.ts";
import type { Wait } from "../../domain/run/wait.ts";
import type { RowState, RunRow, Store } from "../ports/store.ts";
import { decodeSummary } from "../run/run-summary.ts";

/** One Run in its task tree, as lists and consoles show it. Read from Run rows alone, never from histories. */
export interface TaskNode {
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId | null;
  readonly delegationId: DelegationId | null;
  readonly threadId: ThreadId;
  readonly agent: string;
  readonly publication: PublicationRef;
  readonly depth: number;
  readonly state: RowState;
  /** How it ended; null while it lives. */
  readonly end: { readonly kind: string; readonly detail: string | null } | null;
  readonly wait: Wait | null;
  readonly attempt: number;
  readonly steps: number;
  readonly goal: string | null;
  readonly contractVersion: number | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** What this Run itself has used. */
  readonly usage: Usage;
  /** With everything below it, living and ended. */
  readonly totalUsage: Usage;
  readonly children: readonly TaskNode[];
}

const PAGE = 1_000;

/** The tree below (and with) a Run. Children in the order in which they were started. */
export async function taskTree(store: Store, tenant: TenantId, runId: RunId): Promise<TaskNode> {
  const row = await store.getRun(tenant, runId);
  if (row === null) {
    throw new ErrandError(
      "NOT_FOUND",
      `There is no run ${runId}.`,
      "Check the id and the tenant; `errand ps` lists runs.",
    );
  }
  const children = new Map<RunId, RunRow[]>();
  for (let offset = 0; ; offset += PAGE) {
    const filter = { rootRunId: row.rootRunId, order: "oldest", limit: PAGE, offset } as const;
    const rows = await store.listRuns(tenant, filter);
    for (const one of rows) {
      if (one.parentRunId === null) continue;
      const siblings = children.get(one.parentRunId);
      if (siblings === undefined) children.set(one.parentRunId, [one]);
      else siblings.push(one);
    }
    if (rows.length < PAGE) break;
  }
  return node(row, children);
}

function node(row: RunRow, children: ReadonlyMap<RunId, readonly RunRow[]>): TaskNode {
  const below = (children.get(row.runId) ?? []).map((child) => node(child, children));
  return {
    ...taskOf(row),
    totalUsage: below.reduce((sum, one) => addUsage(sum, one.totalUsage), taskOf(row).usage),
    children: below,
  };
}

/** A Run row as a node without children; its total is its own usage. */
export function taskOf(row: RunRow): TaskNode {
  const summary = decodeSummary(row.summary);
  return {
    runId: row.runId,
    rootRunId: row.rootRunId,
    parentRunId: row.parentRunId,
    delegationId: row.delegationId,
    threadId: row.threadId,
    agent: row.agent,
    publication: row.publication,
    depth: row.depth,
    state: row.state,
    end: summary.end,
    wait: row.state === "waiting" || row.state === "awaiting" ? summary.wait : null,
    attempt: summary.attempt,
    steps: summary.steps,
    goal: summary.goal,
    contractVersion: summary.contractVersion,
    createdAt: row.createdAt,
    endedAt: row.endedAt,
    usage: summary.usage,
    totalUsage: summary.usage,
    children: [],
  };
}
