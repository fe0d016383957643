import * as fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { PARENT, PUBLICATION, anyJson, verdict } from "../../../test/support/domain-values.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { parsePublicationRef, parseRunId, parseTicketId } from "../id.ts";
import {
  APPROVAL_SCHEMA,
  type Ticket,
  type TicketDecision,
  approvalDigest,
  decideTicket,
  decisionDigest,
  deriveTicketId,
} from "./ticket.ts";

const call = { step: 1, index: 0 };
const ticketId = deriveTicketId(PARENT, call, 0);
const open: Ticket = {
  ticketId,
  runId: PARENT,
  publication: PUBLICATION,
  kind: "approval",
  call,
  prompt: "Send it?",
  schema: APPROVAL_SCHEMA,
  callDigest: approvalDigest("send", { to: "ada" }),
  deadlineAt: 1_000,
  status: { kind: "open" },
};
const yes: TicketDecision = { ticketId, decisionId: "d1", answer: { approved: true }, by: "ada", expect: {} };
const no: TicketDecision = { ...yes, answer: { approved: false, reason: "not now" } };
const decided = (decision: TicketDecision): Ticket => ({
  ...open,
  status: { kind: "decided", decisionId: decision.decisionId, digest: decisionDigest(decision) },
});
const closed: Ticket = { ...open, status: { kind: "closed", reason: "run canceled" } };

describe("decideTicket", () => {
  it.each<[string, Ticket, TicketDecision, number, readonly string[] | string]>([
    ["the first decision wins", open, yes, 0, ["ticket_decided"]],
    [
      "a decision that names all it expects",
      open,
      { ...yes, expect: { runId: PARENT, publication: PUBLICATION, kind: "approval" } },
      0,
      ["ticket_decided"],
    ],
    ["its exact repeat is the same decision", decided(yes), yes, 0, []],
    ["its repeat by somebody else is the same decision", decided(yes), { ...yes, by: "bob" }, 0, []],
    ["its repeat after the deadline is the same decision", decided(yes), yes, 5_000, []],
    ["another answer comes too late", decided(yes), no, 0, "TICKET_DECIDED"],
    [
      "the same answer as a decision of its own comes too late",
      decided(yes),
      { ...yes, decisionId: "d2" },
      0,
      "TICKET_DECIDED",
    ],
    ["a closed ticket is not decided", closed, yes, 0, "TICKET_CLOSED"],
    ["of another run", open, { ...yes, expect: { runId: parseRunId("run_00000002") } }, 0, "TICKET_MISMATCH"],
    [
      "of another publication",
      open,
      { ...yes, expect: { publication: parsePublicationRef("helper@ffffffffffffffff") } },
      0,
      "TICKET_MISMATCH",
    ],
    ["of another kind", open, { ...yes, expect: { kind: "blocked" } }, 0, "TICKET_MISMATCH"],
    [
      "of another run, though decided",
      decided(yes),
      { ...yes, expect: { runId: parseRunId("run_00000002") } },
      0,
      "TICKET_MISMATCH",
    ],
    ["just before the deadline", open, yes, 999, ["ticket_decided"]],
    ["at the deadline", open, yes, 1_000, "TICKET_EXPIRED"],
    ["an answer that does not fit", open, { ...yes, answer: "yes" }, 0, "TICKET_ANSWER_INVALID"],
    [
      "an answer with more than was asked",
      open,
      { ...yes, answer: { approved: true, also: 1 } },
      0,
      "TICKET_ANSWER_INVALID",
    ],
    [
      "without a deadline, ever",
      { ...open, deadlineAt: null },
      yes,
      Number.MAX_SAFE_INTEGER,
      ["ticket_decided"],
    ],
  ])("L33 %s", (_, ticket, decision, now, then) => {
    expect(verdict(decideTicket(ticket, decision, now))).toEqual(then);
  });

  it("L33 says which part of an answer does not fit", () => {
    const verdict = decideTicket(open, { ...yes, answer: { approved: "yes" } }, 0);
    expect(verdict).toMatchObject({ ok: false, why: expect.stringContaining("/approved") });
  });

  it("L33 of any number of decisions the first that fits wins, and only its repeats are heard again", () => {
    const decision = fc.record({
      ticketId: fc.constant(ticketId),
      decisionId: fc.constantFrom("d1", "d2"),
      answer: fc.constantFrom<TicketDecision["answer"]>({ approved: true }, { approved: false }, "no answer"),
      by: fc.constantFrom(null, "ada"),
      expect: fc.constantFrom({}, { kind: "blocked" as const }),
    });
    fc.assert(
      fc.property(fc.array(decision, { maxLength: 12 }), (decisions) => {
        let ticket = open;
        const heard: TicketDecision[] = [];
        for (const one of decisions) {
          const said = decideTicket(ticket, one, 0);
          if (said.ok) heard.push(one);
          if (said.ok && said.facts.length > 0) ticket = decided(one);
        }
        expect(new Set(heard.map(decisionDigest)).size).toBe(heard.length === 0 ? 0 : 1);
        expect(ticket).toEqual(heard[0] === undefined ? open : decided(heard[0]));
      }),
    );
  });
});

describe("an approval", () => {
  it("L33 is bound to the tool and to these very arguments, in whatever order their keys come", () => {
    fc.assert(
      fc.property(anyJson, anyJson, (one, other) => {
        const same = canonicalJson(one) === canonicalJson(other);
        expect(approvalDigest("send", one) === approvalDigest("send", other)).toBe(same);
        expect(approvalDigest("send", one)).not.toBe(approvalDigest("sent", one));
      }),
    );
    expect(approvalDigest("send", { a: 1, b: 2 })).toBe(approvalDigest("send", { b: 2, a: 1 }));
  });

  it("L33 has an id of its own for each occasion, and one that the parser accepts", () => {
    const ids = [0, 1, 2].map((occasion) => deriveTicketId(PARENT, call, occasion));
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(parseTicketId(id)).toBe(id);
  });
});

it("only a decided ticket has a decision, only a closed one a reason", () => {
  type Status<K extends Ticket["status"]["kind"]> = Extract<Ticket["status"], { kind: K }>;
  expectTypeOf<Status<"open">>().not.toHaveProperty("decisionId");
  expectTypeOf<Status<"decided">>().not.toHaveProperty("reason");
  expectTypeOf<Status<"closed">>().not.toHaveProperty("digest");
});
