import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { jsonCopy } from "../../rules/json-copy.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition, RosterEntry } from "../../runtime/ports/agent.ts";
import {
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
  readSchema,
} from "../../runtime/ports/standard-schema.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import {
  type AgentOptions,
  checkAgentOptions,
  checkNamesOnce,
  invalidAgent,
  parseJson,
  readAgentSchemas,
} from "../agent-options.ts";
import { ModelSession } from "./model-session.ts";
import { AGENT_RUN, ASK, isObjectInput } from "./provider-tools.ts";
import type { ModelPrice } from "./usage-report.ts";

/**
 * An agent that a language model carries. Without `input` and `inputSchema` it takes text, without `output` and
 * `outputSchema` it answers with the model's final text; any other output is asked for as JSON and checked.
 */
export interface ModelAgentOptions extends AgentOptions<StandardSchema, StandardSchema> {
  /** A model object of an AI SDK 6 provider, such as `openai("…")` or `anthropic("…")`. */
  readonly model: LanguageModelV3;
  readonly instructions: string;
  readonly tools?: readonly Tool[];
  /** The agents that this one may delegate to. */
  readonly roster?: readonly (AgentDefinition | RosterEntry)[];
  /** Gives the agent the tool `ask`, with which it may wait for a person. */
  readonly mayAsk?: boolean;
  readonly price?: ModelPrice;
  /** Passed to the provider as it is, by provider name. Keys belong into the provider itself, never here. */
  readonly providerOptions?: SharedV3ProviderOptions;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** When a child of a parallel batch waits after all: end `indeterminate` (default), or go on. */
  readonly onUnexpectedAwait?: "indeterminate" | "continue";
}

/** What the agent of these options takes: as its Standard Schema says, any JSON under a JSON Schema, else text. */
export type ModelAgentInput<Options extends ModelAgentOptions> = Options extends {
  readonly input: infer S extends StandardSchema;
}
  ? SchemaInput<S>
  : "input" | "inputSchema" extends keyof Options
    ? Json
    : Options extends { readonly inputSchema: JsonSchema }
      ? Json
      : string;

/** What the agent of these options answers with. */
export type ModelAgentOutput<Options extends ModelAgentOptions> = Options extends {
  readonly output: infer S extends StandardSchema;
}
  ? SchemaOutput<S>
  : "output" | "outputSchema" extends keyof Options
    ? Json
    : Options extends { readonly outputSchema: JsonSchema }
      ? Json
      : string;

const TEXT: JsonSchema = { type: "string" };
/** What every provider accepts as the name of a tool. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Makes an agent whose every step is one model call over the committed history.
 * @throws ErrandError INVALID_AGENT for a definition that could not run
 */
export function modelAgent<const Options extends ModelAgentOptions>(
  options: Options,
): AgentDefinition<ModelAgentInput<Options>, ModelAgentOutput<Options>>;
export function modelAgent(given: ModelAgentOptions): AgentDefinition {
  const options: ModelAgentOptions = {
    ...given,
    ...(given.input === undefined && given.inputSchema === undefined ? { inputSchema: TEXT } : {}),
    ...(given.output === undefined && given.outputSchema === undefined ? { outputSchema: TEXT } : {}),
  };
  const {
    name,
    model,
    instructions,
    description = "",
    limits = {},
    maxSteps = 64,
    maxAttempts = 5,
  } = options;
  const { tools = [], mayAsk = false, onUnexpectedAwait = "indeterminate" } = options;
  checkAgentOptions(options);
  checkModel(name, model);
  checkPrice(name, options.price);
  const roster = (options.roster ?? []).map(
    (entry): RosterEntry => ("agent" in entry ? entry : { agent: entry }),
  );
  checkTools(name, tools, roster, mayAsk);
  const schemas = readAgentSchemas(options);
  const inputSchema = schemas.input.json;
  const outputSchema = schemas.output.json;
  // A converting schema is published by what comes out of it; the model has to write what goes in.
  const written = readSchema(options.output, options.outputSchema, {
    code: "INVALID_AGENT",
    of: `Agent "${name}"`,
    option: "output",
    jsonOption: "outputSchema",
    side: "input",
  }).json;

  return {
    kind: "model",
    name,
    description,
    inputSchema,
    outputSchema,
    tools,
    roster,
    limits,
    maxSteps,
    maxAttempts,
    mayAsk,
    onUnexpectedAwait,
    // The price is no part of it: it changes what is counted, not what the agent does.
    definition: jsonCopy({
      kind: "model",
      name,
      description,
      instructions,
      model: { provider: model.provider, modelId: model.modelId },
      inputSchema,
      outputSchema,
      tools: tools.map(toolDefinition),
      limits,
      maxSteps,
      maxAttempts,
      mayAsk,
      onUnexpectedAwait,
      settings: {
        temperature: options.temperature ?? null,
        maxOutputTokens: options.maxOutputTokens ?? null,
        providerOptions: withoutSecretMembers(options.providerOptions ?? {}),
      },
    }),
    parseInput: (value) => parseJson(schemas.input, value),
    open: () =>
      new ModelSession({
        model,
        instructions,
        output: { written, read: outputSchema, parse: (value) => parseJson(schemas.output, value) },
        tools,
        roster,
        mayAsk,
        price: options.price,
        providerOptions: options.providerOptions,
        temperature: options.temperature,
        maxOutputTokens: options.maxOutputTokens,
      }),
  };
}

/** A price that is no number would make every sum of costs meaningless. */
function checkPrice(agent: string, price: ModelPrice | undefined): void {
  if (price === undefined) return;
  for (const field of ["inputPerMillionTokens", "outputPerMillionTokens"] as const) {
    if (Number.isFinite(price[field]) && price[field] >= 0) continue;
    throw invalidAgent(
      agent,
      `has \`price.${field}\` ${String(price[field])}`,
      "Give both prices as numbers from 0 on, for a million tokens each.",
    );
  }
}

function checkModel(agent: string, model: unknown): void {
  const seen = (typeof model === "object" && model !== null ? model : {}) as Partial<LanguageModelV3>;
  if (seen.specificationVersion === "v3" && typeof seen.doStream === "function") return;
  const what =
    typeof model === "string"
      ? `the gateway name ${JSON.stringify(model)}`
      : seen.specificationVersion === undefined
        ? "no language model"
        : `a model of specification ${String(seen.specificationVersion)}`;
  throw invalidAgent(
    agent,
    `has as its model ${what}`,
    `Give a model object of a provider package made for AI SDK 6, such as openai("…") from "@ai-sdk/openai" 3.`,
  );
}

function checkTools(
  agent: string,
  tools: readonly Tool[],
  roster: readonly RosterEntry[],
  mayAsk: boolean,
): void {
  const own = [...(roster.length > 0 ? [AGENT_RUN] : []), ...(mayAsk ? [ASK] : [])];
  checkNamesOnce(agent, "tool", [...own, ...tools.map((tool) => tool.name)]);
  checkNamesOnce(
    agent,
    "agent",
    roster.map((entry) => entry.agent.name),
  );
  for (const { name, inputSchema } of tools) {
    if (!TOOL_NAME.test(name)) {
      throw invalidAgent(
        agent,
        `has a tool ${JSON.stringify(name)}, a name that model providers refuse`,
        "Use letters, digits, _ and -, at most 64.",
      );
    }
    if (!isObjectInput(inputSchema)) {
      throw invalidAgent(
        agent,
        `has a tool "${name}" whose input is not an object`,
        "Model providers pass objects only: wrap the input in one.",
      );
    }
  }
}

function toolDefinition(tool: Tool): Json {
  return {
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    replay: tool.replay,
    effect: tool.effect,
    parallel: tool.parallel,
    timeoutMs: tool.timeoutMs,
    maxExecutions: tool.maxExecutions,
    mayNeedApproval: tool.mayNeedApproval,
  };
}

const SECRET_MEMBER =
  /^(.*api[-_]?key|.*secret.*|.*passw(or)?d.*|.*credential.*|authorization|headers|byok|(access|auth|bearer|session)?[-_]?token)$/i;

/** A definition is published, so what looks like a secret stays out of it (L32). */
function withoutSecretMembers(value: unknown): Json {
  if (Array.isArray(value)) return value.map(withoutSecretMembers);
  if (typeof value !== "object" || value === null) return value as Json;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      SECRET_MEMBER.test(key) ? "[redacted]" : withoutSecretMembers(member),
    ]),
  );
}
