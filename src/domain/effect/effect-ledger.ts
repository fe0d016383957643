import type { EffectClass } from "../tool-batch/call-request.ts";
import type { RunFact } from "../run/run-fact.ts";

/** One tool call that touched the world, or was about to. */
export interface Effect {
  /** Stable for the call: (run, step, index). */
  readonly key: string;
  readonly tool: string;
  readonly effectClass: EffectClass;
  readonly executions: number;
  /** `refused`: it was not allowed to begin, and nothing happened. */
  readonly outcome: "refused" | "started" | "done" | "failed" | "unknown";
}

/** The ledger of one Run, read from its facts in order: a line for each call that reads or changes the world. */
export function effectLedger(runId: string, facts: Iterable<RunFact>): readonly Effect[] {
  const calls = new Map<string, { tool: string; effectClass: EffectClass }>();
  const ledger = new Map<string, Effect>();
  for (const fact of facts) {
    switch (fact.type) {
      case "step_published":
        for (const [index, call] of fact.calls.entries()) {
          if (call.kind === "tool" && call.effect !== "none") {
            calls.set(`${fact.step}.${index}`, { tool: call.tool, effectClass: call.effect });
          }
        }
        break;
      case "call_executing":
      case "call_completed":
      case "call_indeterminate": {
        const id = `${fact.step}.${fact.index}`;
        const call = calls.get(id);
        if (call === undefined) break;
        const key = `${runId}:${id}`;
        const before = ledger.get(key);
        if (fact.type === "call_executing") {
          ledger.set(key, { key, ...call, executions: fact.execution, outcome: "started" });
        } else if (before !== undefined) {
          const outcome =
            fact.type === "call_indeterminate" ? "unknown" : fact.outcome.ok ? "done" : "failed";
          ledger.set(key, { ...before, outcome });
        } else if (fact.type === "call_completed" && !fact.outcome.ok) {
          ledger.set(key, { key, ...call, executions: 0, outcome: "refused" });
        }
        break;
      }
      default:
        break;
    }
  }
  return [...ledger.values()];
}
