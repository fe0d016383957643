import { ErrandError } from "../../domain/errand-error.ts";

/**
 * How many Runs may run at the same time; null is no limit, 0 lets nothing begin. Kept in the store, so that every worker
 * obeys the same. A limit is compared with what runs at that moment: nothing is handed out that could be lost, and a
 * lower limit stops nothing that runs.
 */
export interface RunningLimits {
  readonly tenant: number | null;
  /** Of one tree. */
  readonly tree: number | null;
  /** By agent name; all versions of an agent share one limit. */
  readonly agents: Readonly<Record<string, number>>;
}

/** What runs now, counted as the limits count it. */
export interface RunningCounts {
  readonly tenant: number;
  /** Of the tree that was asked for; 0 if none was. */
  readonly tree: number;
  readonly agents: Readonly<Record<string, number>>;
}

export const NO_LIMITS: RunningLimits = { tenant: null, tree: null, agents: {} };

/** The agent's name in `name@digest`. */
export function agentOf(publication: string): string {
  return publication.slice(0, publication.indexOf("@"));
}

export function hasLimits({ tenant, tree, agents }: RunningLimits): boolean {
  return tenant !== null || tree !== null || Object.keys(agents).length > 0;
}

/** @throws ErrandError INVALID_INPUT */
export function checkLimits({ tenant, tree, agents }: RunningLimits): void {
  const named = [["tenant", tenant], ["tree", tree], ...Object.entries(agents)] as const;
  for (const [name, limit] of named) {
    if (limit === null || (Number.isSafeInteger(limit) && limit >= 0)) continue;
    throw new ErrandError(
      "INVALID_INPUT",
      `The limit of ${name} is ${String(limit)}.`,
      "Give a whole number, 0 or more, or none.",
    );
  }
}
