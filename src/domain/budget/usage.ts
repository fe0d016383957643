/** What was used, by unit. Counts of model calls whose provider reported nothing are kept apart: unknown is not zero. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly modelCalls: number;
  /** Model calls whose provider reported no token counts. */
  readonly unreportedModelCalls: number;
  readonly toolCalls: number;
  /** Millionths of the currency in which the agent's prices are given; 0 where no price is configured. */
  readonly costMicros: number;
}

export const NO_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  modelCalls: 0,
  unreportedModelCalls: 0,
  toolCalls: 0,
  costMicros: 0,
};

export function addUsage(left: Usage, right: Usage): Usage {
  if (right === NO_USAGE) return left;
  return {
    inputTokens: left.inputTokens + right.inputTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    modelCalls: left.modelCalls + right.modelCalls,
    unreportedModelCalls: left.unreportedModelCalls + right.unreportedModelCalls,
    toolCalls: left.toolCalls + right.toolCalls,
    costMicros: left.costMicros + right.costMicros,
  };
}
