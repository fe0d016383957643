import type { RunId } from "../domain/id.ts";
import type { Finding } from "../runtime/ports/store-operations.ts";

/*
 * Findings that every store has. A name that ends in `ms` or `bytes` says the unit of its number.
 */

/** Longer than any lease that a worker is started with by default. */
const OLD_LEASE_MS = 60_000;
const LONG_UNCLAIMED_MS = 60_000;

export function finding(name: string, value: string | number): Finding {
  return { name, value, level: "ok", fix: null, runId: null };
}

export function warning(name: string, value: string | number, fix: string): Finding {
  return { name, value, level: "warn", fix, runId: null };
}

/** @param heartbeatAt of the worker, among those that are not dead, that has been silent longest; null if there is none */
export function leaseFinding(now: number, heartbeatAt: number | null): readonly Finding[] {
  if (heartbeatAt === null) return [];
  const age = Math.max(0, now - heartbeatAt);
  return age < OLD_LEASE_MS
    ? [finding("oldest lease, ms", age)]
    : [
        warning(
          "oldest lease, ms",
          age,
          "Start a worker: any live one marks the silent ones dead and takes over.",
        ),
      ];
}

/** @param oldest the Run that has been due longest without a claim; null if there is none */
export function unclaimedFinding(
  now: number,
  oldest: { readonly runId: RunId; readonly dueAt: number } | null,
): readonly Finding[] {
  if (oldest === null) return [];
  const { runId, dueAt } = oldest;
  const age = Math.max(0, now - dueAt);
  const name = "oldest unclaimed run, ms";
  return age < LONG_UNCLAIMED_MS
    ? [{ ...finding(name, age), runId }]
    : [{ ...warning(name, age, "Ask why it waits, and start a worker or raise a limit."), runId }];
}
