import type { SeededRandom } from "../../src/testing/seeded-random.ts";

/** Its replay policy is its name's meaning: `pay` may never be repeated, `post` may under its key, `look` always may. */
export type ToolName = "pay" | "post" | "look";

/** What a Run of a tree does, one step after the other. */
export interface Plan {
  readonly steps: readonly Step[];
}

export type Step =
  | { readonly kind: "tool"; readonly tool: ToolName }
  /** Delegates to as many children at once; one is a sequential delegation. */
  | { readonly kind: "children"; readonly plans: readonly Plan[] };

/** What a tree comes to. */
export interface Outcome {
  readonly runs: number;
  readonly done: number;
  /** Calls whose outcome nobody knows. */
  readonly unknown: number;
}

/** Levels of Runs in a tree. */
export const LEVELS = 3;

/** A tree with sequential, parallel and nested children, about six Runs, each with a tool or two. */
export function planTree(random: SeededRandom, level = 0): Plan {
  const steps: Step[] = [{ kind: "tool", tool: random.pick(["pay", "post", "look"] as const) }];
  if (level < LEVELS - 1) {
    const groups = level === 0 ? random.int(1, 2) : random.int(0, 1);
    for (let group = 0; group < groups; group++) {
      const plans = Array.from({ length: random.pick([1, 1, 2, 3]) }, () => planTree(random, level + 1));
      steps.push({ kind: "children", plans });
    }
  }
  if (random.chance(0.3)) steps.push({ kind: "tool", tool: random.pick(["pay", "post", "look"] as const) });
  return { steps };
}

/** How many Runs and tool calls a plan asks for. */
export function sizeOf(plan: Plan): { readonly runs: number; readonly calls: number } {
  let [runs, calls] = [1, 0];
  for (const step of plan.steps) {
    if (step.kind === "tool") calls += 1;
    else {
      for (const below of step.plans.map(sizeOf)) {
        runs += below.runs;
        calls += below.calls;
      }
    }
  }
  return { runs, calls };
}
