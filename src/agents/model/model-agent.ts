import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { ErrandError } from "../../domain/errand-error.ts";
import type { DelegationLimits } from "../../domain/delegation/limits.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition, RosterEntry } from "../../runtime/ports/agent.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import { ModelSession } from "./model-session.ts";
import { AGENT_RUN, ASK, isObjectInput } from "./provider-tools.ts";
import {
  type InputOf,
  type OutputOf,
  type SchemaSource,
  TEXT_SCHEMA,
  type TextSchema,
  readSchema,
} from "./schema-source.ts";
import type { ModelPrice } from "./usage-report.ts";

export interface ModelAgentOptions<
  Input extends SchemaSource = TextSchema,
  Output extends SchemaSource = TextSchema,
> {
  readonly name: string;
  /** What the agent is good for; other agents read it when they choose whom to delegate to. */
  readonly description?: string;
  /** A model object of an AI SDK 6 provider, such as `openai("…")` or `anthropic("…")`. */
  readonly model: LanguageModelV3;
  readonly instructions: string;
  /** Default: text. */
  readonly input?: Input;
  /** Default: the model's final text. Anything else than a string is answered as JSON and checked. */
  readonly output?: Output;
  readonly tools?: readonly Tool[];
  /** The agents that this one may delegate to. */
  readonly roster?: readonly (AgentDefinition | RosterEntry)[];
  readonly limits?: Partial<DelegationLimits>;
  /** Model turns of one Run; default 64. */
  readonly maxSteps?: number;
  /** Attempts of one Run, the first included; default 5. */
  readonly maxAttempts?: number;
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

const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** What every provider accepts as the name of a tool. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * An agent that a language model carries: each step is one model call over the committed history.
 * @throws ErrandError INVALID_AGENT for a definition that could not run
 */
export function modelAgent<
  const Input extends SchemaSource = TextSchema,
  const Output extends SchemaSource = TextSchema,
>(options: ModelAgentOptions<Input, Output>): AgentDefinition<InputOf<Input>, OutputOf<Output>> {
  const { name, model, instructions } = options;
  if (typeof name !== "string" || !AGENT_NAME.test(name)) {
    throw new ErrandError(
      "INVALID_AGENT",
      `${JSON.stringify(name)} is no agent name.`,
      `Use letters, digits, ".", "_" and "-", at most 64, beginning with a letter or digit.`,
    );
  }
  checkModel(name, model);
  const tools = options.tools ?? [];
  const roster = (options.roster ?? []).map(
    (entry): RosterEntry => ("agent" in entry ? entry : { agent: entry }),
  );
  checkTools(name, tools, roster, options.mayAsk ?? false);
  const maxSteps = positive(name, "maxSteps", options.maxSteps ?? 64);
  const maxAttempts = positive(name, "maxAttempts", options.maxAttempts ?? 5);
  const input = readSchema(options.input ?? TEXT_SCHEMA, `input of agent "${name}"`);
  const output = readSchema(options.output ?? TEXT_SCHEMA, `output of agent "${name}"`);
  const description = options.description ?? "";
  const limits = options.limits ?? {};
  const mayAsk = options.mayAsk ?? false;
  const onUnexpectedAwait = options.onUnexpectedAwait ?? "indeterminate";

  return {
    kind: "model",
    name,
    description,
    inputSchema: input.written,
    outputSchema: output.read,
    tools,
    roster,
    limits,
    maxSteps,
    maxAttempts,
    mayAsk,
    onUnexpectedAwait,
    // The price is no part of it: it changes what is counted, not what the agent does.
    definition: canonical({
      kind: "model",
      name,
      description,
      instructions,
      model: { provider: model.provider, modelId: model.modelId },
      inputSchema: input.written,
      outputSchema: output.read,
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
    parseInput: (value) => input.parse(value),
    open: () =>
      new ModelSession({
        model,
        instructions,
        output,
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

function checkModel(agent: string, model: unknown): void {
  const seen = (typeof model === "object" && model !== null ? model : {}) as Partial<LanguageModelV3>;
  if (seen.specificationVersion === "v3" && typeof seen.doStream === "function") return;
  const what =
    typeof model === "string"
      ? `the gateway name ${JSON.stringify(model)}`
      : seen.specificationVersion === undefined
        ? "no language model"
        : `a model of specification ${String(seen.specificationVersion)}`;
  throw new ErrandError(
    "INVALID_AGENT",
    `The model of agent "${agent}" is ${what}.`,
    `Give a model object of a provider package made for AI SDK 6, such as openai("…") from "@ai-sdk/openai" 3.`,
  );
}

function checkTools(
  agent: string,
  tools: readonly Tool[],
  roster: readonly RosterEntry[],
  mayAsk: boolean,
): void {
  const taken = new Set<string>([...(roster.length > 0 ? [AGENT_RUN] : []), ...(mayAsk ? [ASK] : [])]);
  for (const tool of tools) {
    const problem = !TOOL_NAME.test(tool.name)
      ? ["has a name that model providers refuse.", "Use letters, digits, _ and -, at most 64."]
      : taken.has(tool.name)
        ? [
            "has a name that is taken.",
            "Give each tool of an agent its own name; agent_run and ask are ours.",
          ]
        : !isObjectInput(tool.inputSchema)
          ? ["takes an input that is not an object.", "Model providers pass objects only: wrap it in one."]
          : undefined;
    if (problem !== undefined) {
      throw new ErrandError(
        "INVALID_AGENT",
        `Tool ${JSON.stringify(tool.name)} of agent "${agent}" ${problem[0]}`,
        `${problem[1]}`,
      );
    }
    taken.add(tool.name);
  }
  const names = new Set<string>();
  for (const { agent: child } of roster) {
    if (names.has(child.name)) {
      throw new ErrandError(
        "INVALID_AGENT",
        `The roster of agent "${agent}" has two agents named "${child.name}".`,
        "Give each agent of a roster its own name.",
      );
    }
    names.add(child.name);
  }
}

function positive(agent: string, what: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new ErrandError(
    "INVALID_AGENT",
    `${what} of agent "${agent}" is ${String(value)}.`,
    "Give a whole number of at least 1.",
  );
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

function canonical(value: unknown): Json {
  return JSON.parse(canonicalJson(value as Json)) as Json;
}
