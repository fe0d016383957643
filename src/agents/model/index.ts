export {
  type ModelAgentInput,
  type ModelAgentOptions,
  type ModelAgentOutput,
  modelAgent,
} from "./model-agent.ts";
export { type ScriptedFault, ScriptedProviderError } from "./scripted-error.ts";
export {
  type Script,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedToolResult,
  type ScriptedTurn,
  type ScriptedTurnFunction,
  type ScriptedView,
  failTimes,
  scriptedModel,
} from "./scripted-model.ts";
export type { ModelPrice } from "./usage-report.ts";
