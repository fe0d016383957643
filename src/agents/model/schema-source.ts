import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { ErrandError } from "../../domain/errand-error.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { type JsonSchema, schemaProblems } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";

/** What an agent's input or output may be described with: a Standard Schema (zod, valibot, arktype, …) or a JSON Schema. */
export type SchemaSource = StandardSchemaV1 | JsonSchema;

/** The schema that is used where none is given: plain text. */
export interface TextSchema {
  readonly type: "string";
  readonly [key: string]: Json;
}

export const TEXT_SCHEMA: TextSchema = { type: "string" };

/** What a caller passes in under a schema. */
export type InputOf<S extends SchemaSource> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<S>
  : S extends { readonly type: "string" }
    ? string
    : Json;

/** What comes out of a schema. */
export type OutputOf<S extends SchemaSource> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<S>
  : S extends { readonly type: "string" }
    ? string
    : Json;

export type Parsed =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly message: string };

/** A schema as it is published and as it checks. */
export interface ReadSchema {
  /** What may be written into it, before defaults and transformations. */
  readonly written: JsonSchema;
  /** What comes out of it. */
  readonly read: JsonSchema;
  parse(value: unknown): Promise<Parsed>;
}

/** @param what names the schema in an error, as in `input of agent "reviewer"` */
export function readSchema(source: SchemaSource, what: string): ReadSchema {
  if (isStandardSchema(source)) return readStandardSchema(source, what);
  const schema = withoutDialect(source);
  return {
    written: schema,
    read: schema,
    parse: (value) => Promise.resolve(parseWithJsonSchema(schema, value)),
  };
}

/** One line for each problem, each naming the place in the value. */
export function parseWithJsonSchema(schema: JsonSchema, value: unknown): Parsed {
  const json = asJson(value);
  if (!json.ok) return json;
  const problems = schemaProblems(schema, json.value);
  if (problems.length === 0) return json;
  const lines = problems.map(
    (problem) => `${problem.pointer === "" ? "value" : problem.pointer}: ${problem.message}`,
  );
  return { ok: false, message: lines.join("; ") };
}

function isStandardSchema(source: SchemaSource): source is StandardSchemaV1 {
  return (typeof source === "object" || typeof source === "function") && "~standard" in source;
}

function readStandardSchema(source: StandardSchemaV1, what: string): ReadSchema {
  const standard: StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props> = source["~standard"];
  const converter = standard.jsonSchema;
  if (converter === undefined) {
    throw new ErrandError(
      "INVALID_AGENT",
      `The ${what} is a schema of ${standard.vendor} that cannot be turned into a JSON Schema.`,
      "Use zod 4.2 or newer, another library that implements Standard JSON Schema, or give a JSON Schema.",
    );
  }
  const convert = (direction: "input" | "output"): JsonSchema => {
    try {
      const converted = asJson(converter[direction]({ target: "draft-2020-12" }));
      if (!converted.ok) throw new TypeError(converted.message);
      return withoutDialect(converted.value as JsonSchema);
    } catch (error) {
      throw new ErrandError(
        "INVALID_AGENT",
        `The ${what} cannot be written as a JSON Schema: ${(error as Error).message}.`,
        "Keep to what JSON can carry (no dates, maps or custom types), or give a JSON Schema.",
        { cause: error },
      );
    }
  };
  return {
    written: convert("input"),
    read: convert("output"),
    async parse(value) {
      const outcome = await standard.validate(value);
      if (outcome.issues === undefined) return asJson(outcome.value);
      const lines = outcome.issues.map((issue) => `${issuePath(issue)}: ${issue.message}`);
      return { ok: false, message: lines.join("; ") };
    },
  };
}

function issuePath(issue: StandardSchemaV1.Issue): string {
  if (issue.path === undefined || issue.path.length === 0) return "value";
  return issue.path.map((part) => `/${String(typeof part === "object" ? part.key : part)}`).join("");
}

function asJson(value: unknown): Parsed {
  try {
    return { ok: true, value: JSON.parse(canonicalJson(value as Json)) as Json };
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
}

/** The dialect is always 2020-12, and some providers refuse the key. */
function withoutDialect(schema: JsonSchema): JsonSchema {
  if (typeof schema === "boolean" || !("$schema" in schema)) return schema;
  const { $schema: _, ...rest } = schema;
  return rest;
}
