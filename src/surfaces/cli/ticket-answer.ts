import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { OpenTicket } from "../../runtime/host/resume-ticket.ts";
import { errandCommand } from "./shell-command.ts";

/** The command that answers a ticket, ready to copy; where an answer is free, a sample of the right shape stands in it. */
export function answerCommand(
  ticket: Pick<OpenTicket, "ticketId" | "kind" | "schema">,
  scope: readonly string[],
): string {
  const answer =
    ticket.kind === "approval" ? ["--approve"] : ["--answer", JSON.stringify(sampleAnswer(ticket.schema))];
  return errandCommand(["resume", ticket.ticketId, ...answer], scope);
}

/** Some value that has the shape of a schema; only for people to see what is asked. */
export function sampleAnswer(schema: JsonSchema, depth = 0): Json {
  if (typeof schema === "boolean" || depth > 4) return "…";
  const { type, enum: choices, const: constant, examples, default: preset } = schema as SampleSource;
  const given = [constant, preset, ...(examples ?? []), ...(choices ?? [])].find((one) => one !== undefined);
  if (given !== undefined) return given;
  const [first] = schemaChoices(schema);
  if (first !== undefined) return sampleAnswer(first, depth + 1);
  switch (Array.isArray(type) ? type[0] : type) {
    case "boolean":
      return true;
    case "integer":
    case "number":
      return (schema as { readonly minimum?: number }).minimum ?? 1;
    case "null":
      return null;
    case "array": {
      const { items } = schema as { readonly items?: JsonSchema };
      return items === undefined ? [] : [sampleAnswer(items, depth + 1)];
    }
    case "object":
      return sampleObject(schema, depth);
    default:
      return "…";
  }
}

interface SampleSource {
  readonly type?: string | readonly string[];
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly default?: Json;
  readonly examples?: readonly Json[];
}

function schemaChoices(schema: object): readonly JsonSchema[] {
  const { anyOf = [], oneOf = [] } = schema as {
    readonly anyOf?: readonly JsonSchema[];
    readonly oneOf?: readonly JsonSchema[];
  };
  return [...anyOf, ...oneOf];
}

function sampleObject(schema: object, depth: number): Json {
  const { properties = {}, required = Object.keys(properties) } = schema as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly required?: readonly string[];
  };
  return Object.fromEntries(
    required.map((name) => [name, sampleAnswer(properties[name] ?? true, depth + 1)]),
  );
}
