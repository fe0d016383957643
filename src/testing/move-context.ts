import { DEFAULT_LIMITS } from "../domain/delegation/limits.ts";
import type { PublicationRef, RunId, ThreadId } from "../domain/id.ts";
import type { AgentDefinition } from "../runtime/ports/agent.ts";
import type { MoveContext } from "../runtime/ports/carrier.ts";
import type { LiveDelta } from "../runtime/ports/live-bus.ts";

/** A context that remembers what its carrier told it. */
export interface WatchedContext extends MoveContext {
  readonly deltas: readonly LiveDelta[];
  readonly warnings: readonly string[];
}

/** What a carrier sees of a fresh root Run of `agent`, for tests that drive a carrier without a runtime. */
export function watchedContext(agent: AgentDefinition, extra: Partial<MoveContext> = {}): WatchedContext {
  const deltas: LiveDelta[] = [];
  const warnings: string[] = [];
  const input = extra.input ?? null;
  return {
    header: {
      runId: "run_test0000" as RunId,
      threadId: "thr_test0000" as ThreadId,
      rootRunId: "run_test0000" as RunId,
      origin: null,
      depth: 0,
      lineage: [agent.name],
      agent: agent.name,
      publication: `${agent.name}@0000000000000000` as PublicationRef,
      input,
      outputSchema: agent.outputSchema,
      limits: DEFAULT_LIMITS,
      treeRuns: DEFAULT_LIMITS.maxTreeRuns,
      priority: 5,
      user: null,
    },
    attempt: 1,
    history: [],
    journal: [],
    note: null,
    answer: undefined,
    stepsTaken: 0,
    now: Date.UTC(2026, 0, 1),
    emit: (delta) => void deltas.push(delta),
    warn: (message) => void warnings.push(message),
    deltas,
    warnings,
    ...extra,
    input,
  };
}
