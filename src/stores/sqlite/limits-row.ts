import { NO_LIMITS, type RunningLimits } from "../../runtime/ports/running-limits.ts";

/** A row of `limits`, or none. */
export function limitsOf(row: unknown): RunningLimits {
  if (row === undefined) return NO_LIMITS;
  const { tenant, tree, agents } = row as Omit<RunningLimits, "agents"> & { readonly agents: string };
  return { tenant, tree, agents: JSON.parse(agents) as RunningLimits["agents"] };
}
