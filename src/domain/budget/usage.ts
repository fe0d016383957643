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

/** Null when nothing was used: most steps use nothing, and their facts need not say so six times. */
export function usedOrNull(usage: Usage): Usage | null {
  const { inputTokens, outputTokens, modelCalls, unreportedModelCalls, toolCalls, costMicros } = usage;
  const used = inputTokens + outputTokens + modelCalls + unreportedModelCalls + toolCalls + costMicros;
  return used === 0 ? null : usage;
}

/** @param right null for nothing */
export function addUsage(left: Usage, right: Usage | null): Usage {
  if (right === null || right === NO_USAGE) return left;
  return {
    inputTokens: left.inputTokens + right.inputTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    modelCalls: left.modelCalls + right.modelCalls,
    unreportedModelCalls: left.unreportedModelCalls + right.unreportedModelCalls,
    toolCalls: left.toolCalls + right.toolCalls,
    costMicros: left.costMicros + right.costMicros,
  };
}
