import * as fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { HEADER, PARENT, TOOL_CALL, usageOf, verdict, wish } from "../../../test/support/domain-values.ts";
import { NO_USAGE } from "../budget/usage.ts";
import { derivedIds } from "../delegation/derived-ids.ts";
import { deriveTicketId } from "../ticket/ticket.ts";
import { callAnswer } from "../tool-batch/tool-batch.ts";
import type { RunEnd } from "./run-end.ts";
import type { LaneFact, RunFact, SignalFact } from "./run-fact.ts";
import { type RunState, type RunStatus, createdRun, decideEnd, evolveRun } from "./run.ts";
import type { Wait } from "./wait.ts";

const ticketId = deriveTicketId(PARENT, { step: 1, index: 0 }, 0);
const childOf = (index: number) => derivedIds(PARENT, { step: 1, index }).delegationId;
const END: RunEnd = { kind: "canceled", reason: "enough", confirmed: true };

const published = (step: number, calls = 1): LaneFact => ({
  type: "step_published",
  step,
  mode: "in_order",
  calls: Array.from({ length: calls }, () => TOOL_CALL),
  message: null,
  historyDigest: null,
  usage: null,
});
const opened = (index: number): LaneFact => {
  const {
    limits: _,
    granted: _g,
    depth: _d,
    lineage: _l,
    recursionAllowed: _r,
    ...relation
  } = wish(1, index);
  return { type: "delegation_opened", ...relation };
};
const parked = (wait: Wait): LaneFact => ({ type: "parked", wait, dueInMs: null });
const ended: LaneFact = { type: "run_ended", end: END, usage: null, treeRunsUsed: 1 };

const created = createdRun({ type: "run_created", header: HEADER, delayMs: 0 });
const after = (...facts: readonly RunFact[]): RunState => facts.reduce(evolveRun, created);

const SIGNALS: readonly SignalFact[] = [
  { type: "cancel_requested", reason: "enough", by: null },
  { type: "pause_requested", reason: "wait", by: null },
  { type: "continue_requested", by: null },
  { type: "ticket_decided", ticketId, decisionId: "d", answer: 1, by: null },
  { type: "child_missing", delegationId: childOf(0) },
  { type: "late_result", delegationId: childOf(0), digest: "a", verdict: "conflict" },
];

const laneFact: fc.Arbitrary<LaneFact> = fc.constantFrom<LaneFact>(
  { type: "attempt_started", attempt: 1 },
  { type: "attempt_failed", attempt: 1, error: { code: "x", message: "y" }, retryInMs: 5, usage: usageOf(1) },
  published(1, 2),
  published(2),
  { type: "call_executing", step: 1, index: 0, execution: 1 },
  { type: "call_completed", step: 1, index: 0, outcome: { ok: true, value: 1 } },
  { type: "batch_finalized", step: 1 },
  opened(0),
  opened(1),
  { type: "delegation_closed", delegationId: childOf(0), reason: "consumed", treeRunsUsed: 1 },
  { type: "child_result_consumed", delegationId: childOf(0), digest: "a", usage: usageOf(2) },
  {
    type: "ticket_opened",
    ticketId,
    kind: "blocked",
    call: null,
    publication: HEADER.publication,
    prompt: "?",
    schema: true,
    callDigest: null,
    deadlineInMs: null,
  },
  { type: "ticket_consumed", ticketId, answer: 1 },
  { type: "control_observed", upTo: 3 },
  parked({ on: "timer" }),
  parked({ on: "continue" }),
  parked({ on: "ticket", ticketId, ticketKind: "blocked" }),
  { type: "carrier_noted", note: "n" },
  { type: "continued_as", input: 2 },
);
const anyFact = fc.oneof(laneFact, fc.constantFrom<RunFact>(...SIGNALS));

describe("evolveRun", () => {
  it("L3 an ended run never changes, whatever arrives late", () => {
    fc.assert(
      fc.property(fc.array(anyFact), fc.array(fc.oneof(anyFact, fc.constant(ended))), (before, late) => {
        const over = after(...before, ended);
        expect(over.status).toEqual({ kind: "ended", end: END });
        expect(late.reduce(evolveRun, over)).toBe(over);
      }),
    );
  });

  it.each<[string, readonly RunFact[], RunStatus["kind"]]>([
    ["a created run is ready", [], "ready"],
    ["its lane's first fact makes it running", [{ type: "attempt_started", attempt: 1 }], "running"],
    ["waiting on children", [parked({ on: "children", delegationIds: [childOf(0)] })], "waiting"],
    ["waiting on a timer", [parked({ on: "timer" })], "waiting"],
    ["waiting on a peer", [parked({ on: "peer", detail: "working" })], "waiting"],
    ["waiting to try again", [parked({ on: "retry", attempt: 2 })], "waiting"],
    ["awaiting a ticket", [parked({ on: "ticket", ticketId, ticketKind: "approval" })], "awaiting"],
    ["paused", [parked({ on: "continue" })], "paused"],
  ])("%s", (_, facts, kind) => {
    expect(after(...facts).status.kind).toBe(kind);
  });

  it("starts as created when it is to start later", () => {
    expect(createdRun({ type: "run_created", header: HEADER, delayMs: 5 }).status.kind).toBe("created");
  });

  it.each(SIGNALS.filter((fact) => fact.type !== "late_result"))(
    "L4 $type makes a parked run ready and leaves a running one running",
    (signal) => {
      for (const wait of [
        { on: "timer" },
        { on: "continue" },
        { on: "ticket", ticketId, ticketKind: "approval" },
      ] as const) {
        expect(after(parked(wait), signal).status.kind).toBe("ready");
      }
      expect(after({ type: "attempt_started", attempt: 1 }, signal).status.kind).toBe("running");
    },
  );

  it("keeps the first cancel, the last pause, and forgets a pause when it goes on", () => {
    const [, pause, goOn] = SIGNALS;
    const cancel = (reason: string): RunFact => ({ type: "cancel_requested", reason, by: null });
    expect(after(cancel("first"), cancel("second")).cancel).toEqual({ reason: "first" });
    expect(after(pause!).pause).toEqual({ reason: "wait" });
    expect(after(pause!, goOn!).pause).toBeNull();
  });

  it("L9 step numbers only grow, over attempts and whatever else comes between", () => {
    fc.assert(
      fc.property(fc.array(anyFact), (between) => {
        let state = created;
        let highest = 0;
        for (const fact of between) {
          // As the driver publishes: always under the next number.
          const next: RunFact = fact.type === "step_published" ? { ...fact, step: state.nextStep } : fact;
          state = evolveRun(state, next);
          expect(state.nextStep).toBeGreaterThan(highest);
          highest = state.nextStep - 1;
        }
      }),
    );
  });

  it("R3 an attempt's end is not the run's end: a retry keeps what was recorded", () => {
    const before = after({ type: "attempt_started", attempt: 1 }, published(1), {
      type: "call_completed",
      step: 1,
      index: 0,
      outcome: { ok: true, value: 1 },
    });
    const error = { code: "x", message: "y" };
    const retried = [
      { type: "attempt_failed", attempt: 1, error, retryInMs: 1, usage: usageOf(3) },
      { type: "attempt_started", attempt: 2 },
    ] as const;
    const state = retried.reduce<RunState>(evolveRun, before);
    expect(state).toMatchObject({
      attempt: 2,
      attemptOpen: true,
      failures: 1,
      nextStep: 2,
      usage: { inputTokens: 3 },
    });
    expect(state.batch).toEqual(before.batch);
    expect(evolveRun(state, published(2)).failures).toBe(0);
  });

  it("counts a tool call once however often it is begun, and a child's use apart from its own", () => {
    const began = (execution: number): LaneFact => ({ type: "call_executing", step: 1, index: 0, execution });
    const state = after(published(1), began(1), began(2), opened(0), {
      type: "child_result_consumed",
      delegationId: childOf(0),
      digest: "a",
      usage: usageOf(7),
    });
    expect(state.usage).toEqual({ ...NO_USAGE, toolCalls: 1 });
    expect(state.childUsage).toEqual(usageOf(7));
  });

  it("L11 a late fact about an earlier batch changes nothing of the one under way", () => {
    const state = after(published(1), published(2));
    for (const late of [
      { type: "call_executing", step: 1, index: 0, execution: 1 },
      { type: "call_completed", step: 1, index: 0, outcome: { ok: true, value: 1 } },
      { type: "batch_finalized", step: 1 },
    ] as const) {
      expect(evolveRun(state, late).batch).toEqual(state.batch);
    }
  });
});

describe("decideEnd", () => {
  const unread = (index: number) => ({
    delegationId: childOf(index),
    digest: "a",
    usage: usageOf(5),
    treeRunsUsed: 2,
  });
  const asking = after(published(1, 2), opened(0), opened(1), {
    type: "ticket_opened",
    ticketId,
    kind: "blocked",
    call: null,
    publication: HEADER.publication,
    prompt: "?",
    schema: true,
    callDigest: null,
    deadlineInMs: null,
  });

  it("L17 seals the calls, closes the ticket, discards what is unread and asks every other child, in one commit", () => {
    expect(verdict(decideEnd(asking, END, null, [unread(1)]))).toEqual([
      "call_indeterminate",
      "call_indeterminate",
      "batch_finalized",
      "ticket_closed",
      "child_result_discarded",
      "delegation_closed",
      "delegation_cancel_requested",
      "run_ended",
    ]);
  });

  it("L17 charges what it discards, and the whole grant of a child that still runs", () => {
    const decision = decideEnd(asking, END, null, [unread(1)]);
    const facts = decision.ok ? decision.facts : [];
    const over = facts.reduce(evolveRun, asking);
    expect(facts.at(-1)).toMatchObject({ treeRunsUsed: 1 + 1 + 2 });
    expect(over.childUsage).toEqual(usageOf(5));
    expect(over.delegations.open).toMatchObject([{ delegationId: childOf(0), status: "cancel_requested" }]);
    expect(over.batch?.calls.map(callAnswer)).toMatchObject([
      { error: { code: "not_started" } },
      { error: { code: "not_started" } },
    ]);
  });

  it("L11 a completion with open calls is refused; every other end is not", () => {
    const ends: readonly RunEnd[] = [
      { kind: "failed", error: { code: "x", message: "y" } },
      END,
      { kind: "stopped", reason: "limit", detail: "" },
      { kind: "indeterminate", reason: "" },
    ];
    expect(verdict(decideEnd(asking, { kind: "completed", output: 1 }, null, []))).toBe("BATCH_OPEN");
    for (const end of ends) expect(decideEnd(asking, end, null, []).ok).toBe(true);
  });

  it("L3 the same end again is nothing new, another one is refused", () => {
    const over = after(ended);
    expect(verdict(decideEnd(over, { ...END }, null, []))).toEqual([]);
    expect(verdict(decideEnd(over, { ...END, reason: "other" }, null, []))).toBe("RUN_ENDED");
  });

  it("L17 from any state leaves no open call, no ticket, and no child that was not asked", () => {
    fc.assert(
      fc.property(fc.array(anyFact), fc.subarray([0, 1]), (before, delivered) => {
        const state = after(...before);
        const open = state.delegations.open.map((one) => one.delegationId);
        const results = delivered.map(unread).filter((one) => open.includes(one.delegationId));
        const decision = decideEnd(state, END, null, results);
        expect(decision.ok).toBe(true);
        const over = (decision.ok ? decision.facts : []).reduce(evolveRun, state);
        expect(over.status.kind).toBe("ended");
        expect(over.ticket).toBeNull();
        expect(over.batch?.status ?? "finalized").toBe("finalized");
        expect(over.delegations.open.every((one) => one.status === "cancel_requested")).toBe(true);
        expect(over.delegations.parentEnded).toBe(true);
      }),
    );
  });
});

it("only a run that waits has a wait, only an awaiting one waits for a ticket, only an ended one has an end", () => {
  type Status<K extends RunStatus["kind"]> = Extract<RunStatus, { kind: K }>;
  expectTypeOf<Extract<RunStatus, { end: RunEnd }>["kind"]>().toEqualTypeOf<"ended">();
  expectTypeOf<Status<"awaiting">["wait"]>().toEqualTypeOf<Wait & { readonly on: "ticket" }>();
  expectTypeOf<Status<"ready">>().not.toHaveProperty("wait");
  expectTypeOf<Status<"running">>().not.toHaveProperty("end");
  expectTypeOf<SignalFact["type"] & LaneFact["type"]>().toEqualTypeOf<never>();
});
