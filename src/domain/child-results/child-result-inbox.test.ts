import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PARENT, verdict } from "../../../test/support/domain-values.ts";
import { derivedIds } from "../delegation/derived-ids.ts";
import { type ChildResultInbox, type InboxCommand, decideInbox, evolveInbox } from "./child-result-inbox.ts";

const idOf = (step: number) => derivedIds(PARENT, { step, index: 0 }).delegationId;
const [A] = [idOf(1)];
const record = (digest: string, parentEnded = false): InboxCommand => ({
  type: "record",
  delegationId: A,
  digest,
  parentEnded,
});
const consume: InboxCommand = { type: "consume", delegationId: A, digest: "a" };
const discard: InboxCommand = { type: "discard", delegationId: A, digest: "a" };

function after(inbox: ChildResultInbox, ...commands: readonly InboxCommand[]): ChildResultInbox {
  return commands.reduce((now, command) => {
    const decision = decideInbox(now, command);
    return decision.ok ? decision.facts.reduce(evolveInbox, now) : now;
  }, inbox);
}

const empty: ChildResultInbox = new Map();

describe("decideInbox", () => {
  it.each<[string, ChildResultInbox, InboxCommand, readonly string[] | string]>([
    ["a first delivery is recorded", empty, record("a"), ["result_recorded"]],
    ["the same delivery twice is one", after(empty, record("a")), record("a"), []],
    ["of two that differ the second is refused", after(empty, record("a")), record("b"), "RESULT_CONFLICT"],
    ["the same delivery after its reading is one", after(empty, record("a"), consume), record("a"), []],
    [
      "another one after its reading is refused",
      after(empty, record("a"), consume),
      record("b"),
      "RESULT_CONFLICT",
    ],
    ["what was not delivered is not read", empty, consume, "NOT_DELIVERED"],
    ["what was delivered is read", after(empty, record("a")), consume, ["child_result_consumed"]],
    ["what was read is not read again", after(empty, record("a"), consume), consume, "ALREADY_READ"],
    ["what was read is not discarded", after(empty, record("a"), consume), discard, "ALREADY_READ"],
    ["what was not read is discarded", after(empty, record("a")), discard, ["child_result_discarded"]],
    ["what was discarded is not read", after(empty, record("a"), discard), consume, "ALREADY_READ"],
    ["what was discarded is discarded", after(empty, record("a"), discard), discard, []],
    ["what was not delivered is not discarded", empty, discard, "NOT_DELIVERED"],
  ])("L16 %s", (_, inbox, command, then) => {
    expect(verdict(decideInbox(inbox, command))).toEqual(then);
  });

  it("L17 a delivery to an ended parent is kept, and never read", () => {
    const late = after(empty, record("a", true));
    expect(late.get(A)).toEqual({ digest: "a", status: "discarded" });
    expect(verdict(decideInbox(late, consume))).toBe("ALREADY_READ");
  });
});

describe("an inbox under deliveries and readings in any order", () => {
  const digest = fc.constantFrom("a", "b", "c");
  const command: fc.Arbitrary<InboxCommand> = fc
    .record({ delegationId: fc.constantFrom(idOf(1), idOf(2)), digest })
    .chain((common) =>
      fc.constantFrom<InboxCommand>(
        { type: "record", ...common, parentEnded: false },
        { type: "record", ...common, parentEnded: true },
        { type: "consume", ...common },
        { type: "discard", ...common },
      ),
    );

  it("L16 the first delivery stands, and each is read once at most", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        let now = empty;
        const first = new Map<string, string>();
        const read = new Map<string, number>();
        for (const one of commands) {
          const decision = decideInbox(now, one);
          for (const fact of decision.ok ? decision.facts : []) {
            now = evolveInbox(now, fact);
            if (fact.type === "child_result_consumed")
              read.set(fact.delegationId, (read.get(fact.delegationId) ?? 0) + 1);
          }
          for (const [delegationId, entry] of now) {
            if (!first.has(delegationId)) first.set(delegationId, entry.digest);
            expect(entry.digest).toBe(first.get(delegationId));
          }
        }
        for (const times of read.values()) expect(times).toBe(1);
      }),
    );
  });

  it("L16 changes nothing of the inbox it was given", () => {
    const given = after(empty, record("a"));
    const before = new Map(given);
    after(given, consume, record("b"), discard);
    expect(given).toEqual(before);
  });
});
