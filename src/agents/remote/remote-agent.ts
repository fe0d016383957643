import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { RemoteAgentPort } from "../../runtime/ports/remote-agent.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "../../runtime/ports/standard-schema.ts";
import {
  type AgentOptions,
  checkAgentOptions,
  invalidAgent,
  parseJson,
  readAgentSchemas,
} from "../agent-options.ts";
import { type RemoteBody, RemoteSession } from "./remote-session.ts";

export interface RemoteAgentOptions<I extends StandardSchema, O extends StandardSchema>
  extends AgentOptions<I, O> {
  /** How to reach the peer: `httpRemoteAgent({ baseUrl })`, or an implementation of your own. */
  readonly port: RemoteAgentPort;
  /** Part of the agent's identity, as the peer's own code is not seen from here. Default `1`. */
  readonly version?: string;
  /** The agent's name at the peer, if it is another one there. */
  readonly remoteName?: string;
  /** Milliseconds until the first poll; each further one waits longer. Default 1,000. */
  readonly pollMs?: number;
  /** The longest time between two polls. Default 30,000. */
  readonly maxPollMs?: number;
  /** Whether the peer may ask questions. Default true. */
  readonly mayAsk?: boolean;
  readonly onUnexpectedAwait?: "indeterminate" | "continue";
}

/** An agent that is carried elsewhere. Its Run is an ordinary Run here, parked between polls (L13). */
export function remoteAgent<
  I extends StandardSchema = StandardSchema<Json>,
  O extends StandardSchema = StandardSchema<Json>,
>(options: RemoteAgentOptions<I, O>): AgentDefinition<SchemaInput<I>, SchemaOutput<O>> {
  const { name, port, version = "1", remoteName = options.name } = options;
  const { pollMs = 1_000, maxPollMs = Math.max(30_000, pollMs) } = options;
  const { mayAsk = true, onUnexpectedAwait = "indeterminate" } = options;
  checkAgentOptions(options);
  if (typeof port?.start !== "function") {
    throw invalidAgent(name, "has no `port`", "Give one, for example `httpRemoteAgent({ baseUrl })`.");
  }
  for (const [option, ms] of Object.entries({ pollMs, maxPollMs })) {
    if (!(Number.isFinite(ms) && ms >= 1)) {
      throw invalidAgent(name, `has ${option} ${ms}`, "Use milliseconds from 1 on.");
    }
  }
  const schemas = readAgentSchemas(options);
  const body: RemoteBody = {
    name,
    remoteName,
    port,
    pollMs,
    maxPollMs,
    output: options.output === undefined ? null : schemas.output,
  };
  return {
    kind: "remote",
    name,
    description: options.description ?? "",
    inputSchema: schemas.input.json,
    outputSchema: schemas.output.json,
    tools: [],
    roster: [],
    limits: options.limits ?? {},
    maxSteps: options.maxSteps ?? 1_000,
    maxAttempts: options.maxAttempts ?? 5,
    mayAsk,
    onUnexpectedAwait,
    definition: {
      kind: "remote",
      name,
      version,
      remoteName,
      inputSchema: schemas.input.json,
      outputSchema: schemas.output.json,
      mayAsk,
      onUnexpectedAwait,
    },
    parseInput: (input) => parseJson(schemas.input, input),
    open: () => new RemoteSession(body),
  };
}
