import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { ErrandError } from "../../domain/errand-error.ts";
import { jsonCopy } from "../../rules/json-copy.ts";
import { type JsonSchema, schemaProblems } from "../../rules/json-schema.ts";

/** A schema as users write it: zod, valibot, arktype or whatever else speaks Standard Schema. */
export type StandardSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;
/** What fits the schema before it is checked. */
export type SchemaInput<S extends StandardSchema> = StandardSchemaV1.InferInput<S>;
/** What the schema makes of it. */
export type SchemaOutput<S extends StandardSchema> = StandardSchemaV1.InferOutput<S>;

export type Parsed =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** A user's schema as the runtime needs it: something to publish, and something to check with. */
export interface SchemaReader {
  readonly json: JsonSchema;
  /** Checks and converts. A promise only if the user's own schema is asynchronous. */
  parse(value: unknown): Parsed | Promise<Parsed>;
}

/** Where a schema stands, for the error that says what is wrong with it. */
export interface SchemaPlace {
  readonly code: "INVALID_TOOL" | "INVALID_AGENT" | "INVALID_INPUT";
  /** `Tool "search"`, for example. */
  readonly of: string;
  /** The option that holds the Standard Schema. */
  readonly option: string;
  /** The option that holds a JSON Schema in its place or beside it. */
  readonly jsonOption: string;
  /** Which side of a converting schema is published. */
  readonly side: "input" | "output";
}

/** Reads a Standard Schema, a JSON Schema, or both: then the JSON Schema is published and the other one checks. */
export function readSchema(
  standard: StandardSchema | undefined,
  json: JsonSchema | undefined,
  place: SchemaPlace,
): SchemaReader {
  if (standard !== undefined) {
    if (!isStandardSchema(standard)) {
      throw new ErrandError(
        place.code,
        `${place.of} has a \`${place.option}\` that is not a Standard Schema.`,
        `Give a schema of zod, valibot, arktype or the like, or a JSON Schema as \`${place.jsonOption}\`.`,
      );
    }
    const reader = standard["~standard"];
    return {
      json: json ?? publishedForm(standard, place),
      parse: (value) => {
        const result = reader.validate(value);
        return result instanceof Promise ? result.then(parsed) : parsed(result);
      },
    };
  }
  if (json === undefined) {
    throw new ErrandError(
      place.code,
      `${place.of} has neither \`${place.option}\` nor \`${place.jsonOption}\`.`,
      `Give a Standard Schema as \`${place.option}\` or a JSON Schema as \`${place.jsonOption}\`.`,
    );
  }
  return { json, parse: (value) => parsedByJsonSchema(json, value) };
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as { "~standard"?: unknown })["~standard"];
  return (
    typeof standard === "object" &&
    standard !== null &&
    typeof (standard as { validate?: unknown }).validate === "function"
  );
}

function publishedForm(standard: StandardSchema, place: SchemaPlace): JsonSchema {
  const { jsonSchema, vendor } = standard["~standard"] as StandardSchemaV1.Props &
    Partial<StandardJSONSchemaV1.Props>;
  if (jsonSchema === undefined) {
    throw new ErrandError(
      place.code,
      `${place.of} has a \`${place.option}\` of ${vendor} that cannot say itself as JSON Schema.`,
      `Add \`${place.jsonOption}\`, for example the outcome of the library's own conversion (zod from 4.2 on needs none).`,
    );
  }
  try {
    return jsonCopy(jsonSchema[place.side]({ target: "draft-2020-12" })) as JsonSchema;
  } catch (cause) {
    throw new ErrandError(
      place.code,
      `${place.of} has a \`${place.option}\` that has no JSON Schema: ${messageOf(cause)}.`,
      `Use only what JSON can carry, or add \`${place.jsonOption}\`.`,
      { cause },
    );
  }
}

function parsed(result: StandardSchemaV1.Result<unknown>): Parsed {
  if (result.issues === undefined) return { ok: true, value: result.value };
  const messages = result.issues.map((issue) => {
    const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
    return path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`;
  });
  return { ok: false, message: messages.join("; ") };
}

function parsedByJsonSchema(schema: JsonSchema, value: unknown): Parsed {
  let json;
  try {
    json = jsonCopy(value);
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
  const problems = schemaProblems(schema, json);
  if (problems.length === 0) return { ok: true, value: json };
  const message = problems.map(({ pointer, message: what }) =>
    pointer === "" ? what : `${pointer}: ${what}`,
  );
  return { ok: false, message: message.join("; ") };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
