import type { LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { type JsonSchema, schemaProblems } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";
import { withoutDialect } from "./output-format.ts";
import type { RosterEntry } from "../../runtime/ports/agent.ts";
import type { Tool } from "../../runtime/ports/tool.ts";

/** The tool by which a model delegates: `{ agent, goal, input }`. */
export const AGENT_RUN = "agent_run";
/** The tool by which a model asks a person: `{ prompt, schema? }`. */
export const ASK = "ask";

type ObjectSchema = { readonly [key: string]: Json };

/** What a model may call, in a fixed order: the agent's tools, then delegation, then asking. */
export function providerTools(
  tools: readonly Tool[],
  roster: readonly RosterEntry[],
  mayAsk: boolean,
): readonly LanguageModelV3FunctionTool[] {
  const described = tools.map((tool) =>
    functionTool(tool.name, tool.description, objectSchema(withoutDialect(tool.inputSchema))),
  );
  if (roster.length > 0) described.push(agentRunTool(roster));
  if (mayAsk) described.push(askTool());
  return described;
}

/**
 * What is wrong with the arguments of a call that the runtime itself carries out, or undefined. Who may be delegated to,
 * and with what input, is for the runtime to say.
 */
export function builtInProblem(tool: string, input: { readonly [key: string]: Json }): string | undefined {
  if (tool === AGENT_RUN) return typeof input["goal"] === "string" ? undefined : '"goal" must be a text';
  if (tool !== ASK) return undefined;
  const { prompt, schema } = input;
  if (typeof prompt !== "string" || prompt.trim() === "")
    return '"prompt" must be a text that asks something';
  if (schema === undefined) return undefined;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    return '"schema" must be a JSON Schema object';
  try {
    schemaProblems(schema as JsonSchema, null);
    return undefined;
  } catch (error) {
    return `"schema" is no JSON Schema (${(error as Error).message})`;
  }
}

/** True if a provider can be given this as a tool's input: they all want an object at the root. */
export function isObjectInput(schema: JsonSchema): boolean {
  return typeof schema === "boolean" ? schema : schema["type"] === undefined || schema["type"] === "object";
}

function functionTool(
  name: string,
  description: string,
  inputSchema: ObjectSchema,
): LanguageModelV3FunctionTool {
  return {
    type: "function",
    name,
    description,
    inputSchema: inputSchema as LanguageModelV3FunctionTool["inputSchema"],
  };
}

function objectSchema(schema: JsonSchema): ObjectSchema {
  if (typeof schema === "boolean") return { type: "object" };
  return schema["type"] === undefined && !("$ref" in schema) ? { type: "object", ...schema } : schema;
}

function agentRunTool(roster: readonly RosterEntry[]): LanguageModelV3FunctionTool {
  const lines = roster.map(
    ({ agent }) =>
      `- ${agent.name}: ${agent.description}\n  input: ${canonicalJson(withoutDialect(agent.inputSchema))}`,
  );
  return functionTool(
    AGENT_RUN,
    `Hands one bounded task to another agent and waits for its result. The agent sees the goal and the input only, nothing of this conversation, so say in them all that it needs. Several calls in one turn may run at the same time.\nAgents:\n${lines.join("\n")}`,
    {
      type: "object",
      properties: {
        agent: { type: "string", enum: roster.map(({ agent }) => agent.name), description: "Which agent." },
        goal: { type: "string", description: "What the agent must achieve, in one or a few sentences." },
        input: delegatedInput(roster),
      },
      required: ["agent", "goal", "input"],
      additionalProperties: false,
    },
  );
}

/** One schema if all agents share it, a choice if they can stand side by side, else anything (the runtime checks). */
function delegatedInput(roster: readonly RosterEntry[]): ObjectSchema {
  const description = "The agent's input; it must fit the schema listed for that agent.";
  const schemas = new Map(
    roster
      .map(({ agent }) => withoutDialect(agent.inputSchema))
      .map((schema) => [canonicalJson(schema), schema] as const),
  );
  // A reference points from the root of its own schema and would miss inside another one.
  const movable = [...schemas].every(
    ([text, schema]) => typeof schema === "object" && !text.includes('"$ref"'),
  );
  if (!movable) return { description };
  const objects = [...schemas.values()] as readonly ObjectSchema[];
  const [first, ...others] = objects;
  return first !== undefined && others.length === 0
    ? { ...first, description }
    : { anyOf: objects, description };
}

function askTool(): LanguageModelV3FunctionTool {
  return functionTool(
    ASK,
    "Asks the person you work for and waits for the answer, which may take long. Use it only for what you cannot find out or decide by yourself.",
    {
      type: "object",
      properties: {
        prompt: { type: "string", description: "The question, complete in itself." },
        schema: {
          type: "object",
          description: "A JSON Schema that the answer must fit. Leave it out for an answer in free text.",
        },
      },
      required: ["prompt"],
      additionalProperties: false,
    },
  );
}
