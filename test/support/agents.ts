import { type FunctionAgentOptions, functionAgent } from "../../src/agents/function/function-agent.ts";
import type { FunctionContext } from "../../src/agents/function/function-context.ts";
import type { Json } from "../../src/rules/json.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { StandardSchema } from "../../src/runtime/ports/standard-schema.ts";

type AnySchema = StandardSchema<Json>;
export type JsonAgent = AgentDefinition<Json, Json>;
type More = Partial<Omit<FunctionAgentOptions<AnySchema, AnySchema>, "name" | "run">>;

/** A function agent from any JSON to any JSON. */
export function fn(
  name: string,
  run: (ctx: FunctionContext<Json>, input: Json) => Json | Promise<Json>,
  more: More = {},
): JsonAgent {
  return functionAgent<AnySchema, AnySchema>({
    name,
    version: "1",
    inputSchema: true,
    outputSchema: true,
    replayPatienceMs: 200,
    ...more,
    run,
  });
}

/** An agent that says it never waits for a person, and does: its carrier asks by itself and answers what it was told. */
export function secretAsker(name: string): JsonAgent {
  return {
    ...fn(name, (_ctx, input) => input),
    open: () => ({
      prompt: () => [],
      next: async ({ answer }) =>
        answer === undefined
          ? { kind: "ask", ticketKind: "input_required", prompt: "And now?", schema: true, note: null }
          : { kind: "complete", output: answer, message: null, usage: null },
      dispose: () => undefined,
    }),
  };
}
