import { type AgentDefinition, type DefinedTool, type Json, defineTool } from "errand";
import { modelAgent } from "errand/model";
import { z } from "zod";
import { reviewAgents } from "../../examples/01-release-review/agents.ts";
import { type Plan, planner } from "../../examples/01-release-review/planner-view.ts";
import { ReleaseToReview } from "../../examples/01-release-review/findings.ts";

/** Calls the counter with the call's own effect key; the counter is what deduplicates, as a payment provider would. */
export const POST_NOTICE = "post_notice";
/** May not be repeated: nothing outside would notice. */
export const PAGE_ON_CALL = "page_on_call";

const Nothing = z.object({});
const Done = z.object({ done: z.boolean() });

/**
 * The main job with two colleagues whose tools touch an outside process:
 *
 *     release-day
 *     ├── review-release      the example's whole tree
 *     ├── notify              an idempotent tool
 *     └── page                a tool that may never be repeated
 */
export function killAgents(counter: string, paceMs: number): AgentDefinition<ReleaseToReview, unknown> {
  const pace = { paceMs };
  const outside = (name: string, replay: "idempotent" | "never"): DefinedTool =>
    defineTool({
      name,
      description: `Does its effect in the outside process (${replay}).`,
      inputSchema: { type: "object" },
      replay,
      effect: replay === "never" ? "any" : "idempotent",
      maxExecutions: 100,
      run: async (_input, { effectKey }, signal) => {
        const response = await fetch(counter, {
          method: "POST",
          body: JSON.stringify({ key: effectKey, tool: name }),
          signal,
        });
        return (await response.json()) as { readonly done: boolean };
      },
    });
  const caller = (agent: string, tool: string, replay: "idempotent" | "never"): AgentDefinition =>
    modelAgent({
      name: agent,
      description: `Calls ${tool} once.`,
      instructions: `Call ${tool} once.`,
      input: Nothing,
      output: Done,
      tools: [outside(tool, replay)],
      model: planner(`plan-${agent}`, pace, (talk): Plan => {
        const answer = talk.answer(tool);
        if (answer === null) return { say: `I call ${tool}.`, calls: [{ tool, input: {} }] };
        return { result: { done: answer.ok } };
      }),
    });
  return modelAgent({
    name: "release-day",
    instructions: "Have the release reviewed, the team notified and the person on call paged.",
    input: ReleaseToReview,
    output: Done,
    roster: [
      reviewAgents({ paceMs }),
      caller("notify", POST_NOTICE, "idempotent"),
      caller("page", PAGE_ON_CALL, "never"),
    ],
    model: planner("plan-release-day", pace, (talk): Plan => {
      const { before, after, out } = talk.task(ReleaseToReview);
      const call = (agent: string, goal: string, input: Json) => ({
        tool: "agent_run",
        input: { agent, goal, input },
      });
      if (talk.answer("agent_run") !== null) return { result: { done: true } };
      return {
        say: "All at once.",
        calls: [
          call("review-release", "Review the release", { before, after, out }),
          call("notify", "Notify the team", {}),
          call("page", "Page the person on call", {}),
        ],
      };
    }),
  }) as AgentDefinition<ReleaseToReview, unknown>;
}
