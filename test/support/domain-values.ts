import * as fc from "fast-check";
import { NO_USAGE, type Usage } from "../../src/domain/budget/usage.ts";
import type { Contract } from "../../src/domain/contract/contract.ts";
import type { Decision } from "../../src/domain/decision.ts";
import type { OpenRequest } from "../../src/domain/delegation/delegations.ts";
import { derivedIds } from "../../src/domain/delegation/derived-ids.ts";
import { DEFAULT_LIMITS } from "../../src/domain/delegation/limits.ts";
import { parsePublicationRef, parseRunId, parseThreadId, type RunId } from "../../src/domain/id.ts";
import type { RunHeader } from "../../src/domain/run/run-header.ts";
import type { CallRequest } from "../../src/domain/tool-batch/call-request.ts";
import type { Json } from "../../src/rules/json.ts";

export const PARENT: RunId = parseRunId("run_00000001");
export const PUBLICATION = parsePublicationRef("helper@0123456789abcdef");

export const CONTRACT: Contract = {
  delegationId: derivedIds(PARENT, { step: 1, index: 0 }).delegationId,
  version: 1,
  rootRunId: PARENT,
  parentRunId: PARENT,
  childRunId: derivedIds(PARENT, { step: 1, index: 0 }).childRunId,
  goal: "Find it.",
  inputSchema: true,
  outputSchema: { type: "object" },
};

export const HEADER: RunHeader = {
  runId: PARENT,
  threadId: parseThreadId("thr_00000001"),
  rootRunId: PARENT,
  origin: null,
  depth: 0,
  lineage: ["root"],
  agent: "root",
  publication: parsePublicationRef("root@0123456789abcdef"),
  input: null,
  outputSchema: true,
  limits: DEFAULT_LIMITS,
  treeRuns: 256,
  priority: 0,
  user: null,
};

export const TOOL_CALL: CallRequest = {
  kind: "tool",
  tool: "send",
  input: { to: "ada" },
  replay: "never",
  effect: "any",
};

export const usageOf = (inputTokens: number): Usage => ({ ...NO_USAGE, inputTokens });

/** The wish of a call to delegate, with ids derived as the runtime derives them. */
export function wish(
  step: number,
  index: number,
  more: Partial<Omit<OpenRequest, "step" | "index">> = {},
): OpenRequest {
  const { delegationId, childRunId } = derivedIds(PARENT, { step, index });
  return {
    step,
    index,
    delegationId,
    childRunId,
    target: "helper",
    publication: PUBLICATION,
    contractVersion: 1,
    contractDigest: "d".repeat(64),
    treeRuns: 1,
    limits: DEFAULT_LIMITS,
    granted: 256,
    depth: 0,
    lineage: ["root"],
    recursionAllowed: false,
    ...more,
  };
}

/** What a decision comes to: its facts' types, or the code of its refusal. */
export function verdict(decision: Decision<{ readonly type: string }>): readonly string[] | string {
  return decision.ok ? decision.facts.map((fact) => fact.type) : decision.code;
}

/** Any JSON value, NUL and lone surrogates in its texts included. */
export const anyJson = fc.jsonValue({ stringUnit: "binary" }) as fc.Arbitrary<Json>;
