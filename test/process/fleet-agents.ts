import { type AgentDefinition, type DefinedTool, ErrandError, defineTool, functionAgent } from "errand";
import type { StandardSchema } from "../../src/runtime/ports/standard-schema.ts";
import { LEVELS, type Outcome, type Plan, type ToolName } from "./fleet-plan.ts";

/**
 * Agents that do what a plan says, one a level. Their tools ask the outside process at `counter`.
 * @param aborted told of every tool call that was stopped
 */
export function fleetAgents(
  counter: string,
  aborted: (effectKey: string) => void = () => undefined,
): AgentDefinition<Plan, Outcome> {
  const outside = (name: ToolName, replay: "never" | "idempotent" | "safe"): DefinedTool =>
    defineTool({
      name,
      description: `Does its effect in the outside process (${replay}).`,
      inputSchema: { type: "object" },
      replay,
      effect: replay === "never" ? "any" : replay === "idempotent" ? "idempotent" : "read_only",
      maxExecutions: 1_000,
      run: async (_input, { effectKey }, signal) => {
        const stopped = (): void => aborted(effectKey);
        signal.addEventListener("abort", stopped, { once: true });
        try {
          const body = JSON.stringify({ key: effectKey, tool: name });
          const response = await fetch(counter, { method: "POST", body, signal });
          return (await response.json()) as { readonly done: boolean };
        } finally {
          signal.removeEventListener("abort", stopped);
        }
      },
    });
  const tools = {
    pay: outside("pay", "never"),
    post: outside("post", "idempotent"),
    look: outside("look", "safe"),
  };
  const at = (level: number): AgentDefinition<Plan, Outcome> => {
    const below = level + 1 < LEVELS ? at(level + 1) : null;
    return functionAgent<StandardSchema<Plan>, StandardSchema<Outcome>>({
      name: `fleet-${level}`,
      version: "1",
      inputSchema: true,
      outputSchema: true,
      tools: Object.values(tools),
      roster: below === null ? [] : [below as AgentDefinition],
      run: async (ctx, plan) => {
        const sum = { runs: 1, done: 0, unknown: 0 };
        for (const step of plan.steps) {
          if (step.kind === "tool") {
            const isDone = await ctx.tool(tools[step.tool], {}).then(() => true, failed);
            sum[isDone ? "done" : "unknown"] += 1;
          } else if (below !== null) {
            const ends = await Promise.all(step.plans.map((child) => ctx.run(below, child)));
            for (const end of ends) {
              sum.runs += end.runs;
              sum.done += end.done;
              sum.unknown += end.unknown;
            }
          }
        }
        return sum;
      },
    });
  };
  return at(0);
}

/** A call without a known outcome fails in the function; whatever else is thrown is none of its business. */
function failed(error: unknown): false {
  if (ErrandError.is(error) && error.code === "CALL_FAILED") return false;
  throw error;
}
