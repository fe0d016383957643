import type { Json } from "../../rules/json.ts";
import type { AgentDefinition, RosterEntry } from "../../runtime/ports/agent.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "../../runtime/ports/standard-schema.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import {
  type AgentOptions,
  checkAgentOptions,
  checkNamesOnce,
  invalidAgent,
  parseJson,
  readAgentSchemas,
} from "../agent-options.ts";
import type { FunctionContext } from "./function-context.ts";
import { FunctionSession } from "./function-session.ts";
import type { FunctionBody } from "./session-context.ts";

export interface FunctionAgentOptions<I extends StandardSchema, O extends StandardSchema>
  extends AgentOptions<I, O> {
  /** Part of the agent's identity. Change it whenever the sequence of calls changes: recorded Runs stay with the old one. */
  readonly version: string;
  readonly tools?: readonly Tool[];
  /** Agents that it may delegate to. */
  readonly roster?: readonly (AgentDefinition | RosterEntry)[];
  /** Whether `ctx.ask` is used. Default false. */
  readonly mayAsk?: boolean;
  readonly onUnexpectedAwait?: "indeterminate" | "continue";
  /** How long a replay waits for a recorded call that the function does not make again. Default 30,000. */
  readonly replayPatienceMs?: number;
  run(ctx: FunctionContext<SchemaInput<I>>, input: SchemaOutput<I>): SchemaInput<O> | Promise<SchemaInput<O>>;
}

/** An agent that is a durable TypeScript function. */
export function functionAgent<
  I extends StandardSchema = StandardSchema<Json>,
  O extends StandardSchema = StandardSchema<Json>,
>(options: FunctionAgentOptions<I, O>): AgentDefinition<SchemaInput<I>, SchemaOutput<O>> {
  const { name, version, tools = [], mayAsk = false, onUnexpectedAwait = "indeterminate" } = options;
  const roster = (options.roster ?? []).map((entry) => ("agent" in entry ? entry : { agent: entry }));
  const { replayPatienceMs = 30_000 } = options;
  checkAgentOptions(options);
  if (typeof version !== "string" || version === "") {
    throw invalidAgent(
      name,
      "has no version",
      "Give one, and another whenever its sequence of calls changes.",
    );
  }
  if (typeof options.run !== "function") throw invalidAgent(name, "has no `run`", "Give the function.");
  if (!(replayPatienceMs > 0 && replayPatienceMs < 2 ** 31)) {
    throw invalidAgent(name, `has replayPatienceMs ${replayPatienceMs}`, "Use milliseconds above 0.");
  }
  checkNamesOnce(
    name,
    "tool",
    tools.map((tool) => tool.name),
  );
  checkNamesOnce(
    name,
    "agent",
    roster.map((entry) => entry.agent.name),
  );
  const schemas = readAgentSchemas(options);
  const listed = new Set<unknown>([...tools, ...roster.map((entry) => entry.agent)]);
  const parseInput: FunctionBody["parseInput"] = (input) => parseJson(schemas.input, input);
  const body: FunctionBody = {
    name,
    mayAsk,
    replayPatienceMs,
    output: options.output === undefined ? null : schemas.output,
    parseInput,
    lists: (what) => listed.has(what),
    // What the session passes has been through the input schema, so it has the schema's output type.
    run: (context, input) =>
      options.run(context as FunctionContext<SchemaInput<I>>, input as SchemaOutput<I>),
  };
  return {
    kind: "function",
    name,
    description: options.description ?? "",
    inputSchema: schemas.input.json,
    outputSchema: schemas.output.json,
    tools,
    roster,
    limits: options.limits ?? {},
    maxSteps: options.maxSteps ?? 1_000,
    maxAttempts: options.maxAttempts ?? 3,
    mayAsk,
    onUnexpectedAwait,
    definition: {
      kind: "function",
      name,
      version,
      inputSchema: schemas.input.json,
      outputSchema: schemas.output.json,
      mayAsk,
      onUnexpectedAwait,
      tools: tools.map((tool) => ({
        name: tool.name,
        inputSchema: tool.inputSchema,
        replay: tool.replay,
        effect: tool.effect,
        parallel: tool.parallel,
        mayNeedApproval: tool.mayNeedApproval,
      })),
    },
    parseInput,
    open: () => new FunctionSession(body),
  };
}
