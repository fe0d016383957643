import { describe, expect, expectTypeOf, it } from "vitest";
import { ErrandError } from "./errand-error.ts";
import {
  type DelegationId,
  type Id,
  type RunId,
  type ThreadId,
  parseDelegationId,
  parseIncarnationId,
  parseOperationId,
  parsePublicationRef,
  parseRunId,
  parseTenantId,
  parseThreadId,
  parseTicketId,
} from "./id.ts";

const HEX = "0123456789abcdef0123456789abcdef";

const PARSERS: readonly {
  readonly name: string;
  readonly parse: (text: string) => string;
  readonly good: readonly string[];
  readonly bad: readonly string[];
}[] = [
  {
    name: "tenant",
    parse: parseTenantId,
    good: ["default", "a", "Acme.eu_2-x", "a".repeat(64)],
    bad: [".hidden", "a/b", "a".repeat(65), "ä"],
  },
  {
    name: "run",
    parse: parseRunId,
    good: ["run_00000001", `run_${HEX}`],
    bad: [`thr_${HEX}`, "run_short", `run_${HEX}0`, "run_ABCDEFGH", `run_${HEX}\n`],
  },
  {
    name: "thread",
    parse: parseThreadId,
    good: ["thr_00000001"],
    bad: ["run_00000001", "thr_"],
  },
  {
    name: "delegation",
    parse: parseDelegationId,
    good: [`del_${HEX}`],
    bad: [`del_${HEX}0`, `del_${HEX.slice(1)}`, `del_${HEX.toUpperCase()}`],
  },
  {
    name: "ticket",
    parse: parseTicketId,
    good: [`tkt_${HEX}`],
    bad: [`del_${HEX}`, "tkt_1", `tkt_${HEX.replace("a", "g")}`],
  },
  {
    name: "publication",
    parse: parsePublicationRef,
    good: ["helper@0123456789abcdef"],
    bad: ["helper", "helper@0123", "@0123456789abcdef", "a b@0123456789abcdef"],
  },
  {
    name: "operation",
    parse: parseOperationId,
    good: ["start:run_1", "~", "x".repeat(200)],
    bad: ["with space", "x".repeat(201), "tab\t", "ä"],
  },
  {
    name: "incarnation",
    parse: parseIncarnationId,
    good: ["inc_00000001"],
    bad: ["inc_1", "worker-1"],
  },
];

describe.each(PARSERS)("a $name id", ({ name, parse, good, bad }) => {
  it.each(good)("is %j, unchanged", (text) => {
    expect(parse(text)).toBe(text);
  });

  it.each(["", ...bad])("is not %j, and the error says what it would be", (text) => {
    let error: unknown;
    try {
      parse(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toSatisfy((one) => ErrandError.is(one));
    expect(error).toMatchObject({
      code: "INVALID_ID",
      message: expect.stringContaining(`is not a ${name} id`),
    });
  });

  it("is not something other than a text", () => {
    for (const value of [null, 1, {}, [good[0]]]) expect(() => parse(value as never)).toThrow(ErrandError);
  });
});

it("ids of different kinds, and texts that were not parsed, are not assignable to one another", () => {
  expectTypeOf<RunId>().toExtend<string>();
  expectTypeOf<string>().not.toExtend<RunId>();
  expectTypeOf<RunId>().not.toExtend<ThreadId>();
  expectTypeOf<ThreadId>().not.toExtend<RunId>();
  expectTypeOf<DelegationId>().not.toExtend<RunId>();
  expectTypeOf<Id<"run">>().toEqualTypeOf<RunId>();
  expectTypeOf(parseRunId).returns.toEqualTypeOf<RunId>();
});
