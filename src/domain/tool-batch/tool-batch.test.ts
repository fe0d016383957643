import * as fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { TOOL_CALL, verdict } from "../../../test/support/domain-values.ts";
import type { TicketId } from "../id.ts";
import { type CallOutcome, failed } from "./call-outcome.ts";
import type { CallRequest } from "./call-request.ts";
import {
  type BatchCommand,
  type CallState,
  type ToolBatch,
  callAnswer,
  callEnded,
  decideBatch,
  evolveBatch,
  publishedBatch,
} from "./tool-batch.ts";

const T1 = `tkt_${"1".repeat(32)}` as TicketId;
const T2 = `tkt_${"2".repeat(32)}` as TicketId;
const DONE: CallOutcome = { ok: true, value: 1 };
const OTHER: CallOutcome = { ok: true, value: 2 };
const recorded: CallRequest = { ...TOOL_CALL, kind: "recorded", answer: DONE };

const execute = (index = 0): BatchCommand => ({ type: "execute", index, maxExecutions: 3 });
const waitFor = (ticketId: TicketId, index = 0): BatchCommand => ({
  type: "await",
  index,
  ticketId,
  ticketKind: "approval",
});
const resume = (ticketId: TicketId, index = 0): BatchCommand => ({ type: "resume", index, ticketId });
const complete = (outcome = DONE, index = 0): BatchCommand => ({ type: "complete", index, outcome });
const giveUp = (index = 0): BatchCommand => ({ type: "give_up", index, reason: "outcome_unknown" });

/** The batch after the commands that are allowed; a refused one changes nothing. */
function after(batch: ToolBatch, ...commands: readonly BatchCommand[]): ToolBatch {
  return commands.reduce((now, command) => {
    const decision = decideBatch(now, command);
    return decision.ok ? decision.facts.reduce(evolveBatch, now) : now;
  }, batch);
}

const one = publishedBatch(1, "in_order", [TOOL_CALL]);
const two = publishedBatch(1, "in_order", [TOOL_CALL, TOOL_CALL]);

const command = (calls: number): fc.Arbitrary<BatchCommand> => {
  const index = fc.nat(calls - 1);
  const ticketId = fc.constantFrom(T1, T2);
  return fc.oneof(
    fc.record({
      type: fc.constant("execute" as const),
      index,
      maxExecutions: fc.integer({ min: 1, max: 3 }),
    }),
    fc.record({
      type: fc.constant("await" as const),
      index,
      ticketId,
      ticketKind: fc.constant("approval" as const),
    }),
    fc.record({ type: fc.constant("resume" as const), index, ticketId }),
    fc.record({
      type: fc.constant("complete" as const),
      index,
      outcome: fc.constantFrom(DONE, OTHER, failed("x", "y")),
    }),
    fc.record({
      type: fc.constant("give_up" as const),
      index,
      reason: fc.constantFrom("outcome_unknown" as const, "child_missing" as const),
    }),
    fc.constant({ type: "finalize" } as const),
    fc.constant({ type: "seal" } as const),
  );
};

/** A published batch and commands in any order. */
interface Walk {
  readonly batch: ToolBatch;
  readonly commands: readonly BatchCommand[];
}

const walk: fc.Arbitrary<Walk> = fc
  .array(fc.constantFrom(TOOL_CALL, recorded), { minLength: 1, maxLength: 4 })
  .chain((requests) =>
    fc.record({
      batch: fc
        .constantFrom("parallel" as const, "in_order" as const)
        .map((mode) => publishedBatch(1, mode, requests)),
      commands: fc.array(command(requests.length), { maxLength: 30 }),
    }),
  );

describe("decideBatch", () => {
  it.each<[string, ToolBatch, BatchCommand, readonly string[] | string]>([
    ["a requested call begins", one, execute(), ["call_executing"]],
    ["a begun call begins again, recovered", after(one, execute()), execute(), ["call_executing"]],
    [
      "a call begins no oftener than it may",
      after(one, execute(), execute(), execute()),
      execute(),
      "TOO_MANY_EXECUTIONS",
    ],
    ["an awaiting call does not begin", after(one, waitFor(T1)), execute(), "CALL_NOT_AWAITING"],
    ["the same wait again is nothing new", after(one, waitFor(T1)), waitFor(T1), []],
    ["a call waits for a later ticket instead", after(one, waitFor(T1)), waitFor(T2), ["call_awaiting"]],
    [
      "a second call does not wait beside the first",
      after(two, waitFor(T1)),
      waitFor(T2, 1),
      "ANOTHER_CALL_AWAITS",
    ],
    ["a call resumes by its own ticket", after(one, waitFor(T1)), resume(T1), ["call_resumed"]],
    ["a call does not resume by another ticket", after(one, waitFor(T1)), resume(T2), "CALL_NOT_AWAITING"],
    ["a call that does not await does not resume", one, resume(T1), "CALL_NOT_AWAITING"],
    ["the same answer again is nothing new", after(one, complete()), complete(), []],
    ["another answer is a conflict", after(one, complete()), complete(OTHER), "RESULT_CONFLICT"],
    ["an ended call does not begin", after(one, complete()), execute(), "CALL_ENDED"],
    ["a call given up twice is given up once", after(one, giveUp()), giveUp(), []],
    ["an answer after giving up comes too late", after(one, giveUp()), complete(), "CALL_ENDED"],
    [
      "a batch with an open call is not finalized",
      after(two, complete()),
      { type: "finalize" },
      "CALLS_STILL_OPEN",
    ],
    [
      "a batch is finalized when all have ended",
      after(two, complete(), giveUp(1)),
      { type: "finalize" },
      ["batch_finalized"],
    ],
    [
      "a finalized batch says nothing more",
      after(one, complete(), { type: "finalize" }),
      { type: "finalize" },
      [],
    ],
    [
      "sealing a finalized batch adds nothing",
      after(one, complete(), { type: "finalize" }),
      { type: "seal" },
      [],
    ],
    ["there is no other call", one, execute(7), "NO_SUCH_CALL"],
  ])("L9 %s", (_, batch, given, then) => {
    expect(verdict(decideBatch(batch, given))).toEqual(then);
  });

  it("L11 sealing answers what never started as not started, and what had as unknown", () => {
    const requests = [TOOL_CALL, TOOL_CALL, { ...TOOL_CALL, approval: true }, TOOL_CALL];
    const batch = after(publishedBatch(4, "parallel", requests), complete(), execute(1), waitFor(T1, 2), {
      type: "seal",
    });
    expect(batch.status).toBe("finalized");
    expect(batch.calls.map((call) => callAnswer(call))).toMatchObject([
      DONE,
      { ok: false, error: { code: "outcome_unknown" } },
      { ok: false, error: { code: "not_started" } },
      { ok: false, error: { code: "not_started" } },
    ]);
  });

  it("L11 a call that had begun and then waited is unknown when it is sealed", () => {
    const [call] = after(one, execute(), waitFor(T1), { type: "seal" }).calls;
    expect(call).toMatchObject({ phase: "indeterminate", reason: "sealed" });
  });

  it("L14 a call that began keeps that over any number of waits", () => {
    const [call] = after(one, execute(), waitFor(T1), waitFor(T2), resume(T2)).calls;
    expect(call).toMatchObject({ phase: "executing", execution: 1 });
    const [never] = after(one, waitFor(T1), waitFor(T2), resume(T2)).calls;
    expect(never).toMatchObject({ phase: "requested" });
  });
});

/** Every batch that a walk leads through, the published one first. */
function trail({ batch, commands }: Walk): readonly ToolBatch[] {
  const passed = [batch];
  for (const next of commands) passed.push(after(passed.at(-1) ?? batch, next));
  return passed;
}

/** Each batch of a walk with the one before it. */
const steps = (passed: readonly ToolBatch[]) =>
  passed.slice(1).map((now, at) => ({ now, before: passed[at]! }));

describe("a batch under commands in any order", () => {
  it("L11 never has two calls that await", () => {
    fc.assert(
      fc.property(walk, (way) => {
        for (const { calls } of trail(way)) {
          expect(calls.filter((call) => call.phase === "awaiting").length).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it("L9 never changes an ended call, nor what any call was asked", () => {
    fc.assert(
      fc.property(walk, (way) => {
        for (const { now, before } of steps(trail(way))) {
          const over = [...before.calls.entries()].filter(([, call]) => callEnded(call));
          expect(over.map(([index]) => now.calls[index])).toEqual(over.map(([, call]) => call));
          expect(now.calls.map((call) => call.request)).toEqual(way.batch.calls.map((call) => call.request));
        }
      }),
    );
  });

  it("L9 is finalized only when every call has its answer, and then never changes", () => {
    fc.assert(
      fc.property(walk, (way) => {
        for (const { now, before } of steps(trail(way)).filter((step) => step.now.status === "finalized")) {
          expect(now.calls.every((call) => callAnswer(call) !== undefined)).toBe(true);
          expect(before.status === "open" ? now : before).toEqual(now);
        }
      }),
    );
  });

  it("L11 is answered whole by one seal, whatever came before, and a second seal adds nothing", () => {
    const code = (call: CallState) => {
      const answer = callAnswer(call);
      return answer === undefined || answer.ok ? null : answer.error.code;
    };
    fc.assert(
      fc.property(walk, (way) => {
        const before = trail(way).at(-1) ?? way.batch;
        const sealed = after(before, { type: "seal" });
        expect(sealed.calls.every(callEnded)).toBe(true);
        expect(sealed.status).toBe("finalized");
        const of = (phase: CallState["phase"]) =>
          sealed.calls.filter((_, index) => before.calls[index]?.phase === phase).map(code);
        expect(new Set(of("requested"))).toEqual(new Set(of("requested").map(() => "not_started")));
        expect(new Set(of("executing"))).toEqual(new Set(of("executing").map(() => "outcome_unknown")));
        expect(verdict(decideBatch(sealed, { type: "seal" }))).toEqual([]);
      }),
    );
  });

  it("L8 numbers the executions of a call from one on", () => {
    fc.assert(
      fc.property(walk, ({ batch, commands }) => {
        let now = batch;
        const begun: number[][] = batch.calls.map(() => []);
        for (const next of commands) {
          const decision = decideBatch(now, next);
          for (const fact of decision.ok ? decision.facts : []) {
            now = evolveBatch(now, fact);
            if (fact.type === "call_executing") begun[fact.index]?.push(fact.execution);
          }
        }
        for (const numbers of begun) expect(numbers).toEqual(numbers.map((_, at) => at + 1));
      }),
    );
  });
});

it("L11 only an awaiting call has a ticket, only an ended one an answer or a reason", () => {
  type Phase<P extends CallState["phase"]> = Extract<CallState, { phase: P }>;
  expectTypeOf<Phase<"awaiting">>().toHaveProperty("ticketId");
  expectTypeOf<Extract<CallState, { ticketId: TicketId }>["phase"]>().toEqualTypeOf<"awaiting">();
  expectTypeOf<Extract<CallState, { outcome: CallOutcome }>["phase"]>().toEqualTypeOf<"completed">();
  expectTypeOf<Phase<"indeterminate">>().not.toHaveProperty("outcome");
  expectTypeOf<Phase<"requested">>().not.toHaveProperty("execution");
});
