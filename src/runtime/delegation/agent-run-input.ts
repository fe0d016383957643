import type { Json } from "../../rules/json.ts";

/** Input of the `agent_run` tool. */
export interface AgentRunInput {
  readonly agent: string;
  readonly goal: string;
  readonly input: Json;
}
