import { contractDigest } from "../../domain/contract/contract.ts";
import { type DelegationFact, treeRunsLeft } from "../../domain/delegation/delegations.ts";
import { derivedIds } from "../../domain/delegation/derived-ids.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { RunState } from "../../domain/run/run.ts";
import { callKeyText } from "../../domain/tool-batch/call-key.ts";
import type { ExpectedRows, ExpectedRun } from "./expected.ts";
import type { Report } from "./problem.ts";

/** Pure checks of the facts by which a parent and its children are related. */

export function checkOpened(
  state: RunState,
  fact: DelegationFact & { readonly type: "delegation_opened" },
  rows: ExpectedRows,
  report: Report,
): void {
  const { header, batch, delegations } = state;
  const ids = derivedIds(header.runId, fact);
  if (fact.delegationId !== ids.delegationId || fact.childRunId !== ids.childRunId) {
    const found = { delegationId: fact.delegationId, childRunId: fact.childRunId };
    report("id_not_derived", `delegation of call ${callKeyText(fact)}`, ids, found);
  }
  if (rows.delegations.has(fact.delegationId)) {
    report("fact_not_allowed", `${fact.delegationId} opened`, "once", "again");
  }
  const call = batch?.step === fact.step ? batch.calls[fact.index] : undefined;
  if (call?.phase !== "executing" || call.request.kind !== "delegation") {
    report(
      "fact_not_allowed",
      `${fact.delegationId} opened`,
      "its call begun in the same commit",
      call?.phase,
    );
  }
  const { limits } = header;
  const left = treeRunsLeft(delegations, header.treeRuns);
  const within =
    fact.treeRuns >= 1 &&
    fact.treeRuns <= left &&
    header.depth < limits.maxDepth &&
    delegations.total < limits.maxChildren &&
    delegations.open.length < limits.maxParallelChildren;
  if (!within) report("fact_not_allowed", `${fact.delegationId} opened`, { limits, left }, fact.treeRuns);
}

export function checkRelation(
  run: ExpectedRun,
  state: RunState,
  fact: DelegationFact & { readonly type: "delegation_cancel_requested" | "delegation_closed" },
  facts: readonly LaneFact[],
  report: Report,
): void {
  const { delegationId } = fact;
  const open = state.delegations.open.find((one) => one.delegationId === delegationId);
  const wanted = fact.type === "delegation_closed" ? "open or asked to cancel" : "open";
  if (open === undefined || (fact.type === "delegation_cancel_requested" && open.status !== "open")) {
    report("fact_not_allowed", `${delegationId} ${fact.type}`, wanted, open?.status ?? "closed");
    return;
  }
  if (fact.type !== "delegation_closed") return;
  const read = facts.some(
    (one) =>
      one.type === `child_result_${fact.reason}` &&
      "delegationId" in one &&
      one.delegationId === delegationId,
  );
  const missing = fact.reason === "child_missing" && run.missingChildren.has(delegationId);
  if (!read && !missing) {
    report(
      "fact_not_allowed",
      `${delegationId} closed`,
      "its result read, or its child missing",
      fact.reason,
    );
  }
}

export function checkRead(
  state: RunState,
  fact: LaneFact & { readonly type: "child_result_consumed" | "child_result_discarded" },
  facts: readonly LaneFact[],
  rows: ExpectedRows,
  report: Report,
): void {
  const { delegationId, digest } = fact;
  const row = rows.inbox.get(delegationId);
  if (row?.kind !== "result" || row.digest !== digest || row.status !== "unread") {
    const found = row === undefined ? null : { kind: row.kind, digest: row.digest, status: row.status };
    report(
      "result_not_delivered",
      `${delegationId} ${fact.type}`,
      { kind: "result", digest, status: "unread" },
      found,
    );
  }
  if (fact.type !== "child_result_consumed") return;
  const open = state.delegations.open.find((one) => one.delegationId === delegationId);
  const answered = facts.some(
    (one) => one.type === "call_completed" && one.step === open?.step && one.index === open.index,
  );
  if (!answered)
    report("result_not_delivered", `${delegationId} consumed`, "its call answered with it", "no answer");
}

/** The child that a relationship names, as its first fact describes it, against the relationship and the parent. */
function checkChild(
  parent: RunHeader,
  opened: DelegationFact & { readonly type: "delegation_opened" },
  child: RunHeader,
  report: Report,
): void {
  const ids = derivedIds(parent.runId, opened);
  const expected = {
    runId: ids.childRunId,
    threadId: ids.childThreadId,
    rootRunId: parent.rootRunId,
    parentRunId: parent.runId,
    delegationId: ids.delegationId,
    depth: parent.depth + 1,
    lineage: [...parent.lineage, opened.target],
    agent: opened.target,
    publication: opened.publication,
    treeRuns: opened.treeRuns,
    contractDigest: opened.contractDigest,
  };
  const { origin } = child;
  const found = {
    runId: child.runId,
    threadId: child.threadId,
    rootRunId: child.rootRunId,
    parentRunId: origin?.parentRunId,
    delegationId: origin?.delegationId,
    depth: child.depth,
    lineage: child.lineage,
    agent: child.agent,
    publication: child.publication,
    treeRuns: child.treeRuns,
    contractDigest: origin === null ? null : contractDigest(origin.contract),
  };
  if (JSON.stringify(expected) !== JSON.stringify(found)) {
    report("child_differs", `child of ${opened.delegationId}`, expected, found);
  }
}

/** A root is its own root; a child is created in the commit that opens its relationship (L14). */
export function checkOrigin(
  header: RunHeader,
  opened: (DelegationFact & { readonly type: "delegation_opened" }) | undefined,
  parent: RunHeader | undefined,
  report: Report,
): void {
  if (header.origin === null) {
    if (header.rootRunId !== header.runId || header.depth !== 0) {
      report("child_differs", `root ${header.runId}`, "its own root, at depth 0", header);
    }
  } else if (opened === undefined || parent === undefined) {
    report("child_differs", `child ${header.runId}`, "created with its relationship (L14)", "alone");
  } else checkChild(parent, opened, header, report);
}
