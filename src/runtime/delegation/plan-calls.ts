import { schemaProblems } from "../../rules/json-schema.ts";
import type { RunState } from "../../domain/run/run.ts";
import type { TenantId } from "../../domain/id.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import type { CallRequest } from "../../domain/tool-batch/call-request.ts";
import type { BatchMode } from "../../domain/tool-batch/tool-batch.ts";
import type { PublicationCatalog } from "../catalog/publication-catalog.ts";
import type { Publication } from "../catalog/publication.ts";
import type { AgentRunInput } from "./agent-run-input.ts";
import { admitsAll } from "./delegate.ts";
import type { LoadedAgent } from "../ports/agent.ts";
import type { WantedCall } from "../ports/carrier.ts";

export interface Plan {
  readonly calls: readonly CallRequest[];
  readonly mode: BatchMode;
}

interface Planned {
  readonly request: CallRequest;
  /** Of a delegation. */
  readonly target: Publication | undefined;
}

/** Turns what a carrier wants into calls with a kind, a policy and, where they are malformed, their answer. */
export async function planCalls(
  tenant: TenantId,
  state: RunState,
  agent: LoadedAgent,
  catalog: PublicationCatalog,
  wanted: readonly WantedCall[],
): Promise<Plan> {
  const planned: Planned[] = [];
  for (const want of wanted) planned.push(await planCall(tenant, agent, catalog, want));
  return { calls: planned.map((one) => one.request), mode: batchMode(state, agent, planned) };
}

/**
 * Delegations run in parallel only when the delegation service owns every call, each can only end, and all are admitted
 * (L18); ordinary tools when each declares it. Everything else runs in call order.
 */
function batchMode(state: RunState, agent: LoadedAgent, planned: readonly Planned[]): BatchMode {
  const live = planned.filter((one) => one.request.kind !== "recorded");
  if (live.length < 2) return "in_order";
  if (live.every((one) => one.target !== undefined)) {
    const terminal = live.every((one) => one.target?.terminalOnly === true);
    return terminal && admitsAll(state, agent, planned) ? "parallel" : "in_order";
  }
  const independent = live.every(
    ({ request }) =>
      request.kind === "sleep" ||
      (request.kind === "tool" &&
        request.approval !== true &&
        agent.tools.get(request.tool)?.parallel === true),
  );
  return independent ? "parallel" : "in_order";
}

async function planCall(
  tenant: TenantId,
  agent: LoadedAgent,
  catalog: PublicationCatalog,
  want: WantedCall,
): Promise<Planned> {
  const common = {
    tool: want.tool,
    input: want.input,
    ...(want.providerCallId === undefined ? {} : { providerCallId: want.providerCallId }),
    ...(want.site === undefined ? {} : { site: want.site }),
  };
  const plain = (request: CallRequest): Planned => ({ request, target: undefined });
  const recorded = (answer: CallOutcome): Planned =>
    plain({ kind: "recorded", ...common, replay: "safe", effect: "none", answer });
  if (want.answer !== undefined) return recorded(want.answer);
  switch (want.tool) {
    case "agent_run": {
      const input = want.input as Partial<AgentRunInput> | null;
      const name = typeof input === "object" && input !== null ? input.agent : undefined;
      const entry = typeof name === "string" ? agent.roster.get(name) : undefined;
      if (entry === undefined) {
        const known = [...agent.roster.keys()];
        return recorded(
          failed(
            "unknown_agent",
            `${JSON.stringify(name ?? null)} is not in the roster. ${known.length === 0 ? "The roster is empty." : `It has: ${known.join(", ")}.`}`,
          ),
        );
      }
      const target = await catalog.resolve(tenant, entry.ref);
      const problems = schemaProblems(target.inputSchema, input?.input ?? null);
      if (problems.length > 0) {
        return recorded(
          failed(
            "invalid_input",
            `The input does not fit ${name}: ${problems.map((one) => `${one.pointer || "/"}: ${one.message}`).join("; ")}`,
          ),
        );
      }
      return { request: { kind: "delegation", ...common, replay: "durable", effect: "none" }, target };
    }
    case "ask":
      return agent.definition.mayAsk
        ? plain({ kind: "ask", ...common, replay: "durable", effect: "none" })
        : recorded(failed("ask_not_allowed", `${agent.definition.name} is not declared with mayAsk.`));
    case "sleep":
      return plain({ kind: "sleep", ...common, replay: "durable", effect: "none" });
    default: {
      const tool = agent.tools.get(want.tool);
      if (tool === undefined) {
        const known = [...agent.tools.keys()];
        return recorded(
          failed(
            "unknown_tool",
            `There is no tool ${JSON.stringify(want.tool)}. ${known.length === 0 ? "This agent has no tools." : `There are: ${known.join(", ")}.`}`,
          ),
        );
      }
      const parsed = tool.parse(want.input);
      if (!parsed.ok) return recorded(failed("invalid_input", parsed.message));
      const { replay, effect } = tool;
      const approval = tool.approval(want.input) ? { approval: true } : {};
      return plain({ kind: "tool", ...common, replay, effect, ...approval });
    }
  }
}
