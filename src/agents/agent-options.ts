import type { DelegationLimits } from "../domain/delegation/limits.ts";
import { ErrandError } from "../domain/errand-error.ts";
import { jsonCopy } from "../rules/json-copy.ts";
import type { JsonSchema } from "../rules/json-schema.ts";
import type { Json } from "../rules/json.ts";
import { type SchemaReader, type StandardSchema, readSchema } from "../runtime/ports/standard-schema.ts";

/** What every agent says of itself, whatever carries it. */
export interface AgentOptions<I extends StandardSchema, O extends StandardSchema> {
  readonly name: string;
  readonly description?: string;
  /** Checks, converts and types the input. Omit it to take whatever fits `inputSchema`. */
  readonly input?: I;
  readonly inputSchema?: JsonSchema;
  /** Checks, converts and types the output. Omit it to return whatever fits `outputSchema`. */
  readonly output?: O;
  readonly outputSchema?: JsonSchema;
  readonly limits?: Partial<DelegationLimits>;
  readonly maxSteps?: number;
  readonly maxAttempts?: number;
}

export interface AgentSchemas {
  readonly input: SchemaReader;
  readonly output: SchemaReader;
}

export function readAgentSchemas(options: AgentOptions<StandardSchema, StandardSchema>): AgentSchemas {
  const of = `Agent "${options.name}"`;
  return {
    input: readSchema(options.input, options.inputSchema, {
      code: "INVALID_AGENT",
      of,
      option: "input",
      jsonOption: "inputSchema",
      side: "input",
    }),
    output: readSchema(options.output, options.outputSchema, {
      code: "INVALID_AGENT",
      of,
      option: "output",
      jsonOption: "outputSchema",
      side: "output",
    }),
  };
}

/** Refuses an agent as it is defined, so that no Run meets the mistake. */
export function checkAgentOptions(options: AgentOptions<StandardSchema, StandardSchema>): void {
  if (typeof options.name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(options.name)) {
    throw invalidAgent(
      options.name,
      "has a name that no publication can carry",
      'Use 1 to 64 letters, digits, ".", "_" and "-", a letter or digit first.',
    );
  }
  const counts: Record<string, number | undefined> = {
    maxSteps: options.maxSteps,
    maxAttempts: options.maxAttempts,
    ...options.limits,
  };
  for (const [option, count] of Object.entries(counts)) {
    if (count !== undefined && !(Number.isInteger(count) && count >= 1)) {
      throw invalidAgent(options.name, `has ${option} ${count}`, "Use a whole number from 1 on.");
    }
  }
}

/** Refuses two of a kind under one name. */
export function checkNamesOnce(agent: string, what: string, names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw invalidAgent(agent, `lists the ${what} "${twice}" twice`, "List each name once.");
  }
}

export function invalidAgent(agent: string, what: string, fix: string): ErrandError {
  return new ErrandError("INVALID_AGENT", `Agent ${JSON.stringify(agent)} ${what}.`, fix);
}

export type ParsedJson =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly message: string };

/** Checks and converts a value that must stay JSON: an agent's input, its output, the answer to a question. */
export async function parseJson(reader: SchemaReader, value: unknown): Promise<ParsedJson> {
  const parsed = await reader.parse(value);
  if (!parsed.ok) return parsed;
  try {
    return { ok: true, value: jsonCopy(parsed.value) };
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
}
