/** How far a Run may delegate. The unit is in every name; all are at least 1. */
export interface DelegationLimits {
  /** Levels of children below the root. */
  readonly maxDepth: number;
  /** Children of one Run over its whole life. */
  readonly maxChildren: number;
  /** Children of one Run that are open at the same time. */
  readonly maxParallelChildren: number;
  /** Runs of the whole tree, the root included; escrowed from parent to child. */
  readonly maxTreeRuns: number;
}

export const DEFAULT_LIMITS: DelegationLimits = {
  maxDepth: 8,
  maxChildren: 64,
  maxParallelChildren: 8,
  maxTreeRuns: 256,
};
