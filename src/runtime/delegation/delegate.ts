import { schemaProblems } from "../../rules/json-schema.ts";
import type { ResultEnvelope } from "../../domain/child-results/envelope.ts";
import { type Contract, contractDigest } from "../../domain/contract/contract.ts";
import { type Delegation, decideDelegations, treeRunsLeft } from "../../domain/delegation/delegations.ts";
import { derivedIds } from "../../domain/delegation/derived-ids.ts";
import type { DelegationLimits } from "../../domain/delegation/limits.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import { type RunState, evolveRun } from "../../domain/run/run.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import type { CallKey } from "../../domain/tool-batch/call-key.ts";
import type { CallRequest } from "../../domain/tool-batch/call-request.ts";
import type { Publication } from "../catalog/publication.ts";
import type { LoadedAgent } from "../ports/agent.ts";
import type { AgentRunInput } from "./agent-run-input.ts";

export type Admission =
  | { readonly ok: true; readonly facts: readonly LaneFact[]; readonly child: RunHeader }
  | { readonly ok: false; readonly answer: CallOutcome };

/**
 * Admits one delegating call: derives its identities, writes its contract, and looks at limits in one order.
 * Pure; the relationship exists once the facts and the child's row are committed together (L14, L19).
 */
export function admitDelegation(
  state: RunState,
  agent: LoadedAgent,
  target: Publication,
  request: CallRequest,
  call: CallKey,
): Admission {
  const { header } = state;
  const input = request.input as unknown as AgentRunInput;
  const ids = derivedIds(header.runId, call);
  const contract: Contract = {
    delegationId: ids.delegationId,
    version: 1,
    rootRunId: header.rootRunId,
    parentRunId: header.runId,
    childRunId: ids.childRunId,
    goal: input.goal,
    inputSchema: target.inputSchema,
    outputSchema: target.outputSchema,
  };
  const limits = narrowed(header.limits, target.limits);
  const left = treeRunsLeft(state.delegations, header.treeRuns);
  const leaf = Object.keys(target.roster).length === 0;
  const treeRuns = leaf ? 1 : Math.min(limits.maxTreeRuns, Math.max(1, Math.ceil(left / 2)));
  const entry = agent.roster.get(target.name);
  const decision = decideDelegations(state.delegations, {
    type: "open",
    request: {
      ...call,
      delegationId: ids.delegationId,
      childRunId: ids.childRunId,
      target: target.name,
      publication: target.ref,
      contractVersion: contract.version,
      contractDigest: contractDigest(contract),
      treeRuns,
      limits: header.limits,
      granted: header.treeRuns,
      depth: header.depth,
      lineage: header.lineage,
      recursionAllowed: entry?.recursive === true,
    },
  });
  if (!decision.ok)
    return {
      ok: false,
      answer: failed(decision.code.toLowerCase(), `${target.name} was not started: ${decision.why}.`),
    };
  return {
    ok: true,
    facts: decision.facts,
    child: {
      runId: ids.childRunId,
      threadId: ids.childThreadId,
      rootRunId: header.rootRunId,
      origin: { parentRunId: header.runId, delegationId: ids.delegationId, call, contract },
      depth: header.depth + 1,
      lineage: [...header.lineage, target.name],
      agent: target.name,
      publication: target.ref,
      input: input.input,
      outputSchema: contract.outputSchema,
      limits,
      treeRuns,
      priority: header.priority,
      user: header.user,
    },
  };
}

/** True if every delegation of a batch would be admitted, one after the other: all of them in one commit, or none (L18). */
export function admitsAll(
  before: RunState,
  agent: LoadedAgent,
  calls: readonly { readonly request: CallRequest; readonly target: Publication | undefined }[],
): boolean {
  let state = before;
  for (const [index, { request, target }] of calls.entries()) {
    if (target === undefined) continue;
    const admission = admitDelegation(state, agent, target, request, { step: before.nextStep, index });
    if (!admission.ok) return false;
    for (const fact of admission.facts) state = evolveRun(state, fact);
  }
  return true;
}

/** A child never gets wider limits than its parent has (L22). */
function narrowed(parent: DelegationLimits, own: DelegationLimits): DelegationLimits {
  return {
    maxDepth: Math.min(parent.maxDepth, own.maxDepth),
    maxChildren: Math.min(parent.maxChildren, own.maxChildren),
    maxParallelChildren: Math.min(parent.maxParallelChildren, own.maxParallelChildren),
    maxTreeRuns: Math.min(parent.maxTreeRuns, own.maxTreeRuns),
  };
}

/** What a child's end is worth to its parent: completed counts only when it fits the contract (L20). */
export function acceptedOutcome(
  envelope: ResultEnvelope,
  outputSchema: Contract["outputSchema"],
  target: string,
): CallOutcome {
  const { end, childRunId } = envelope;
  switch (end.kind) {
    case "completed": {
      const problems = schemaProblems(outputSchema, end.output);
      if (problems.length === 0) return { ok: true, value: end.output };
      const missing = problems.map((one) => `${one.pointer || "/"}: ${one.message}`);
      return failed(
        "not_accepted",
        `${target} completed, but its result does not fit the contract: ${missing.join("; ")}.`,
        {
          childRunId,
          missing,
        },
      );
    }
    case "failed":
      return failed("child_failed", `${target} failed: ${end.error.message}`, {
        childRunId,
        code: end.error.code,
      });
    case "canceled":
      return failed("child_canceled", `${target} was canceled: ${end.reason}`, { childRunId });
    case "stopped":
      return failed(`child_stopped_${end.reason}`, `${target} was stopped (${end.reason}): ${end.detail}`, {
        childRunId,
      });
    case "indeterminate":
      return failed("child_indeterminate", `The outcome of ${target} is unknown: ${end.reason}`, {
        childRunId,
      });
    default:
      return end satisfies never;
  }
}

/** The facts that consume a child's result, apart from the call's own answer. */
export function consumptionFacts(
  delegation: Delegation,
  envelope: ResultEnvelope,
  digest: string,
  how: "consumed" | "discarded",
): readonly LaneFact[] {
  const { delegationId } = delegation;
  return [
    how === "consumed"
      ? { type: "child_result_consumed", delegationId, digest, usage: envelope.usage }
      : { type: "child_result_discarded", delegationId, digest, usage: envelope.usage },
    { type: "delegation_closed", delegationId, reason: how, treeRunsUsed: envelope.treeRunsUsed },
  ];
}
