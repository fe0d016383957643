import { canonicalJson } from "../../rules/canonical-json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";

/** How a model is asked for its final answer. */
export type OutputFormat =
  | { readonly kind: "text" }
  | {
      readonly kind: "json";
      readonly schema: { readonly [key: string]: Json };
      /** The answer is the member `value`, because providers want an object at the root. */
      readonly wrapped: boolean;
    };

/** Plain strings are answered as text; everything else as JSON that the provider is told the schema of. */
export function outputFormat(schema: JsonSchema): OutputFormat {
  const plain = withoutDialect(schema);
  const object = typeof plain === "boolean" ? {} : plain;
  if (object["type"] === "string") return { kind: "text" };
  if (object["type"] === "object") return { kind: "json", schema: object, wrapped: false };
  // Definitions are referred to from the root, so they stay there.
  const { $defs, definitions, ...value } = object;
  return {
    kind: "json",
    wrapped: true,
    schema: {
      type: "object",
      properties: { value },
      required: ["value"],
      additionalProperties: false,
      ...($defs === undefined ? {} : { $defs }),
      ...(definitions === undefined ? {} : { definitions }),
    },
  };
}

/**
 * What the instructions say about the answer. Some providers drop the schema of a JSON answer (they only promise
 * "some JSON"), and refuse a request for JSON whose messages do not mention the word.
 */
export function outputInstructions(format: OutputFormat): string {
  return format.kind === "text"
    ? ""
    : `\n\nGive your final answer as one JSON value, without any text around it, that fits this JSON Schema:\n${canonicalJson(format.schema)}`;
}

/** The value that an answer's text holds, or why it holds none. */
export function readJsonAnswer(
  text: string,
  format: Extract<OutputFormat, { kind: "json" }>,
): { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly message: string } {
  const trimmed = text.trim();
  // Models like to fence JSON, whatever they are told.
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(trimmed);
  let value: Json;
  try {
    value = JSON.parse(fenced?.[1] ?? trimmed) as Json;
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
  if (!format.wrapped) return { ok: true, value };
  const inner = typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  if (inner === undefined || !("value" in inner))
    return { ok: false, message: 'it has no member "value", which holds the answer' };
  return { ok: true, value: (inner as { readonly value: Json }).value };
}

/** The dialect is always the same, a schema inside another one may not name it, and some providers refuse it. */
export function withoutDialect(schema: JsonSchema): JsonSchema {
  if (typeof schema === "boolean" || !("$schema" in schema)) return schema;
  const { $schema: _, ...rest } = schema;
  return rest;
}
