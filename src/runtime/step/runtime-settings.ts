/** How patient the runtime is. Every time is in milliseconds. */
export interface RuntimeSettings {
  /** Claims of one Run without a single commit before it ends `indeterminate`. */
  readonly maxFruitlessClaims: number;
  /** How long a canceled Run's tools and model call may take to stop before they are fenced. */
  readonly cancelGraceMs: number;
  /** First pause between attempts; doubled for each failure in a row. */
  readonly retryFirstMs: number;
  readonly retryLongestMs: number;
}

export const DEFAULT_SETTINGS: RuntimeSettings = {
  maxFruitlessClaims: 5,
  cancelGraceMs: 5_000,
  retryFirstMs: 500,
  retryLongestMs: 60_000,
};

/** Pause before the attempt that follows the given number of failures, at least what the provider asked for. */
export function retryPauseMs(
  settings: RuntimeSettings,
  failures: number,
  retryAfterMs: number | null,
): number {
  const backoff = Math.min(settings.retryLongestMs, settings.retryFirstMs * 2 ** Math.max(0, failures - 1));
  return Math.max(backoff, retryAfterMs ?? 0);
}
