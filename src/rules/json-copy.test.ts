import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyJson } from "../../test/support/domain-values.ts";
import { canonicalJson } from "./canonical-json.ts";
import { jsonCopy } from "./json-copy.ts";

describe("jsonCopy", () => {
  it("carries every JSON value over, and shares nothing with it", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const copied = jsonCopy(value);
        expect(canonicalJson(copied)).toBe(canonicalJson(value));
        expect(copied === value).toBe(typeof value !== "object" || value === null);
      }),
    );
  });

  it.each<[string, unknown, string]>([
    ["a map", { a: [new Map()] }, "a Map at /a/0"],
    ["an error", { cause: new Error("x") }, "a Error at /cause"],
    ["NaN", [1, NaN], "the number NaN at /1"],
    ["a function", { f: () => 1 }, "a function at /f"],
    ["a bigint", 1n, "a bigint"],
  ])("refuses %s and names its place", (_, value, what) => {
    expect(() => jsonCopy(value)).toThrow(`JSON cannot carry ${what}`);
  });

  it("refuses a cycle, and leaves out what is undefined", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect(() => jsonCopy(cycle)).toThrow(/cycle/);
    expect(jsonCopy({ a: undefined, b: [undefined] })).toEqual({ b: [null] });
  });
});
