import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyJson } from "../../test/support/domain-values.ts";
import { canonicalJson, rememberCanonical } from "./canonical-json.ts";
import type { Json } from "./json.ts";

/** The same value with the members of every object put in another order. */
function shuffled(value: Json, seed: number): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => shuffled(item, seed));
  const members = Object.entries(value as Readonly<Record<string, Json>>);
  const at = members.length === 0 ? 0 : seed % members.length;
  const turned = [...members.slice(at), ...members.slice(0, at)].reverse();
  return Object.fromEntries(turned.map(([key, member]) => [key, shuffled(member, seed)]));
}

describe("canonicalJson", () => {
  it.each([
    [{ b: 1, a: [true, null, "x"] }, '{"a":[true,null,"x"],"b":1}'],
    [{ é: 1, e: 2, Z: 3 }, '{"Z":3,"e":2,"é":1}'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [[undefined, -0, 1e21], "[null,0,1e+21]"],
    [undefined, "null"],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["nul \0 and \uD800 alone", '"nul \\u0000 and \\ud800 alone"'],
  ])("writes %j as %s", (value, text) => {
    expect(canonicalJson(value as Json)).toBe(text);
  });

  it.each([
    ["NaN", NaN],
    ["Infinity", { a: Infinity }],
    ["a bigint", [1n]],
    ["a function", { f: () => 1 }],
    ["a symbol", Symbol("s")],
  ])("refuses %s", (_, value) => {
    expect(() => canonicalJson(value as Json)).toThrow(TypeError);
  });

  it("refuses a cycle instead of going on for ever", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect(() => canonicalJson(cycle as Json)).toThrow(/cycle/);
  });

  it("L9 does not depend on the order of keys", () => {
    fc.assert(
      fc.property(anyJson, fc.nat(7), (value, seed) => {
        expect(canonicalJson(shuffled(value, seed))).toBe(canonicalJson(value));
      }),
    );
  });

  it("L9 is valid UTF-8 without NUL, and comes out the same from its own parse", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = canonicalJson(value);
        expect(text).not.toContain("\0");
        expect(Buffer.from(text, "utf8").toString("utf8")).toBe(text);
        expect(canonicalJson(JSON.parse(text) as Json)).toBe(text);
      }),
    );
  });

  it("tells values apart that differ", () => {
    fc.assert(
      fc.property(anyJson, anyJson, (one, other) => {
        const same = canonicalJson(one) === canonicalJson(other);
        expect(same).toBe(canonicalJson([one]) === canonicalJson([other]));
      }),
    );
  });

  it("writes a remembered value as it would write it afresh, wherever it occurs", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const fresh = canonicalJson({ before: 1, inside: [structuredClone(value)] });
        expect(canonicalJson({ before: 1, inside: [rememberCanonical(value)] })).toBe(fresh);
        expect(canonicalJson({ before: 1, inside: [rememberCanonical(value)] })).toBe(fresh);
      }),
    );
  });
});
