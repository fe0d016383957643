import { type FunctionAgentOptions, functionAgent } from "../../src/agents/function/function-agent.ts";
import type { FunctionContext } from "../../src/agents/function/function-context.ts";
import type { Json } from "../../src/rules/json.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import { Recorder, echo } from "./recorder.ts";

export type AnyOptions = Partial<FunctionAgentOptions<never, never>>;
/** A function agent with the `echo` tool that takes and returns any JSON. */
export const agent = (run: (ctx: FunctionContext<Json>) => unknown, more: AnyOptions = {}): AgentDefinition =>
  functionAgent({
    name: "f",
    version: "1",
    inputSchema: true,
    outputSchema: true,
    tools: [echo],
    replayPatienceMs: 20,
    ...(more as object),
    run: run as (ctx: FunctionContext<Json>) => Json | Promise<Json>,
  });
export const finish = (definition: AgentDefinition, recorder = new Recorder()) =>
  recorder.play(definition.open());
export const tick = () => new Promise((resolve) => setImmediate(resolve));

/** Fails the test during which a rejection went unheard. */
export function watchRejections(): () => void {
  const unheard: unknown[] = [];
  process.on("unhandledRejection", (reason) => unheard.push(reason));
  return () => {
    if (unheard.length > 0)
      throw new Error(`Unheard rejections: ${unheard.splice(0).map(String).join(", ")}`);
  };
}
