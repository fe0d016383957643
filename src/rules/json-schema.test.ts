import { expect, it } from "vitest";
import { type JsonSchema, schemaProblems } from "./json-schema.ts";
import type { Json } from "./json.ts";

const PERSON: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    tags: { type: "array", items: { type: "string" } },
    home: { $ref: "#/$defs/place" },
  },
  required: ["name"],
  additionalProperties: false,
  $defs: { place: { type: "object", properties: { "a/b~c": { type: "number" } }, required: ["a/b~c"] } },
};

it.each<[string, JsonSchema, Json, readonly string[]]>([
  ["a value that fits", PERSON, { name: "Ada", tags: ["x"], home: { "a/b~c": 1 } }, []],
  ["a missing member", PERSON, {}, [""]],
  ["a member of another type", PERSON, { name: 1 }, ["/name"]],
  ["an item deep inside", PERSON, { name: "Ada", tags: ["x", 2] }, ["/tags/1"]],
  [
    "a member behind a reference, its key escaped",
    PERSON,
    { name: "A", home: { "a/b~c": "1" } },
    ["/home/a~1b~0c"],
  ],
  ["what is not allowed", { enum: ["red", "blue"] }, "green", [""]],
  ["anything under true", true, { any: [1] }, []],
  ["anything under an empty schema", {}, "x", []],
  ["anything under false", false, null, [""]],
])("names where %s misses its schema", (_, schema, value, pointers) => {
  const problems = schemaProblems(schema, value);
  expect(problems.map((one) => one.pointer)).toEqual(expect.arrayContaining([...pointers]));
  expect(problems.length > 0).toBe(pointers.length > 0);
  for (const { message } of problems) expect(message).not.toBe("");
});

it("answers the same for the same schema object and for a copy of it", () => {
  const first = schemaProblems(PERSON, { name: 1, more: true });
  expect(schemaProblems(PERSON, { name: 1, more: true })).toEqual(first);
  expect(schemaProblems(structuredClone(PERSON), { name: 1, more: true })).toEqual(first);
  expect(first.length).toBeGreaterThan(1);
});
