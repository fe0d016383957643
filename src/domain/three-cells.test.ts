import { describe, expect, expectTypeOf, it } from "vitest";
import { CONTRACT, HEADER, PARENT, TOOL_CALL, usageOf, wish } from "../../test/support/domain-values.ts";
import type { ChildResultInbox, InboxEntry, InboxFact } from "./child-results/child-result-inbox.ts";
import { decideInbox, evolveInbox } from "./child-results/child-result-inbox.ts";
import { type Delegation, type DelegationFact, NO_DELEGATIONS } from "./delegation/delegations.ts";
import { decideDelegations, evolveDelegations } from "./delegation/delegations.ts";
import { derivedIds } from "./delegation/derived-ids.ts";
import type { RunFact } from "./run/run-fact.ts";
import { createdRun, evolveRun } from "./run/run.ts";
import { deriveTicketId } from "./ticket/ticket.ts";
import {
  type CallState,
  type ToolBatch,
  decideBatch,
  evolveBatch,
  publishedBatch,
} from "./tool-batch/tool-batch.ts";

/*
 * The three state cells each have one owner, and each has something that it never holds: the delegation a tool result,
 * the tool batch a child's history, the child-result inbox a child's state.
 */

const { delegationId, childRunId } = derivedIds(PARENT, { step: 1, index: 0 });
const OUTPUT = "what the child found out";

/** Every key that occurs anywhere in a value as it is stored. */
function keysOf(value: unknown): ReadonlySet<string> {
  const keys = new Set<string>();
  JSON.parse(JSON.stringify(value), (key, member: unknown) => {
    if (!/^\d*$/.test(key)) keys.add(key);
    return member;
  });
  return keys;
}

const relation = decideDelegations(NO_DELEGATIONS, { type: "open", request: wish(1, 0) });
const relationFacts: readonly DelegationFact[] = [
  ...(relation.ok ? relation.facts : []),
  { type: "delegation_cancel_requested", delegationId, reason: "enough" },
  { type: "delegation_closed", delegationId, reason: "consumed", treeRunsUsed: 3 },
];

const ticketId = deriveTicketId(PARENT, { step: 1, index: 0 }, 0);
const batch = [
  { type: "execute", index: 0, maxExecutions: 1 },
  { type: "await", index: 0, ticketId, ticketKind: "input_required" },
  { type: "resume", index: 0, ticketId },
  { type: "complete", index: 0, outcome: { ok: true, value: OUTPUT } },
  { type: "finalize" },
] as const;
function walkedBatch(): { readonly states: readonly ToolBatch[]; readonly facts: readonly RunFact[] } {
  const states = [publishedBatch(1, "in_order", [{ ...TOOL_CALL, kind: "delegation" }])];
  const facts: RunFact[] = [];
  for (const command of batch) {
    const decision = decideBatch(states.at(-1)!, command);
    for (const fact of decision.ok ? decision.facts : []) {
      facts.push(fact);
      states.push(evolveBatch(states.at(-1)!, fact));
    }
  }
  return { states, facts };
}

function walkedInbox(): {
  readonly states: readonly ChildResultInbox[];
  readonly facts: readonly InboxFact[];
} {
  const states: ChildResultInbox[] = [new Map()];
  const facts: InboxFact[] = [];
  for (const command of [
    { type: "record", delegationId, digest: "a", parentEnded: false },
    { type: "consume", delegationId, digest: "a" },
  ] as const) {
    const decision = decideInbox(states.at(-1)!, command);
    for (const fact of decision.ok ? decision.facts : []) {
      facts.push(fact);
      states.push(evolveInbox(states.at(-1)!, fact));
    }
  }
  return { states, facts };
}

describe("each cell keeps to its own", () => {
  it("L15 a delegation never holds a tool result", () => {
    expectTypeOf<keyof Delegation>().toEqualTypeOf<
      | "delegationId"
      | "childRunId"
      | "step"
      | "index"
      | "target"
      | "publication"
      | "contractVersion"
      | "contractDigest"
      | "treeRuns"
      | "status"
    >();
    let state = NO_DELEGATIONS;
    for (const fact of relationFacts) {
      state = evolveDelegations(state, fact);
      for (const key of keysOf([fact, state])) {
        expect(["result", "outcome", "output", "answer", "value", "error", "envelope"]).not.toContain(key);
      }
    }
  });

  it("L13 a tool batch never holds a child's history, nor its identity", () => {
    type Named = Exclude<keyof CallState, "request">;
    expectTypeOf<Named>().toEqualTypeOf<"phase">();
    expectTypeOf<keyof ToolBatch>().toEqualTypeOf<"step" | "mode" | "status" | "calls">();
    const { states, facts } = walkedBatch();
    expect(states.at(-1)?.status).toBe("finalized");
    const keys = keysOf([states, facts]);
    for (const never of [
      "history",
      "messages",
      "message",
      "childRunId",
      "delegationId",
      "envelope",
      "contract",
    ]) {
      expect(keys).not.toContain(never);
    }
  });

  it("L15 an inbox never holds a child's state", () => {
    expectTypeOf<keyof InboxEntry>().toEqualTypeOf<"digest" | "status">();
    const { states, facts } = walkedInbox();
    expect(states.at(-1)?.get(delegationId)?.status).toBe("consumed");
    const keys = keysOf([states.map((inbox) => [...inbox]), facts]);
    expect([...keys].sort()).toEqual(["delegationId", "digest", "late", "status", "type"]);
  });

  it("L15 in a run's facts a child's result stands in the call's answer alone", () => {
    const child = {
      ...HEADER,
      runId: childRunId,
      origin: { parentRunId: PARENT, delegationId, call: { step: 1, index: 0 }, contract: CONTRACT },
    };
    const facts: readonly RunFact[] = [
      ...relationFacts,
      ...walkedBatch().facts,
      { type: "child_result_consumed", delegationId, digest: "a", usage: usageOf(1) },
    ];
    const holding = facts.filter((fact) => JSON.stringify(fact).includes(OUTPUT));
    expect(holding.map((fact) => fact.type)).toEqual(["call_completed"]);
    const parent = facts.reduce(evolveRun, createdRun({ type: "run_created", header: HEADER, delayMs: 0 }));
    expect(JSON.stringify(parent.delegations)).not.toContain(OUTPUT);
    expect(JSON.stringify(parent)).not.toContain(JSON.stringify(child.origin.contract));
  });
});
