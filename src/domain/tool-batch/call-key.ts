/** Identity of a call inside its Run: (step, index), minted in the commit that publishes the batch. */
export interface CallKey {
  /** Counts up over all attempts of the Run and never restarts; the first is 1. */
  readonly step: number;
  /** Place in the batch, from 0. */
  readonly index: number;
}

/** `step.index`, as people read it and as keys are built. */
export function callKeyText(call: CallKey): string {
  return `${call.step}.${call.index}`;
}
