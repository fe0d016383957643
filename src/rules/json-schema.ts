import { type Schema, Validator } from "@cfworker/json-schema";
import type { Json } from "./json.ts";

/** One way in which a value misses its schema: a JSON pointer into the value, and what was expected there. */
export interface SchemaProblem {
  readonly pointer: string;
  readonly message: string;
}

/** A JSON Schema (draft 2020-12) as stored in contracts, publications and tickets. */
export type JsonSchema = boolean | { readonly [key: string]: Json };

const validators = new WeakMap<object, Validator>();

/** Every way in which `value` misses `schema`; empty when it fits. Compiled once for each schema object. */
export function schemaProblems(schema: JsonSchema, value: Json): readonly SchemaProblem[] {
  if (schema === true || (typeof schema === "object" && Object.keys(schema).length === 0)) return [];
  if (schema === false) return [{ pointer: "", message: "no value is allowed here" }];
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = new Validator(schema as Schema, "2020-12", false);
    validators.set(schema, validator);
  }
  const outcome = validator.validate(value);
  if (outcome.valid) return [];
  const problems = outcome.errors
    .filter((unit) => unit.keyword !== "properties" && unit.keyword !== "items" && unit.keyword !== "$ref")
    .map((unit) => ({ pointer: unit.instanceLocation.replace(/^#/, ""), message: unit.error }));
  return problems.length > 0 ? problems : [{ pointer: "", message: "does not fit the schema" }];
}
