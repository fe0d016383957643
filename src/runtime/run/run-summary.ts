import { NO_USAGE, type Usage, addUsage, usedOrNull } from "../../domain/budget/usage.ts";
import type { RunState } from "../../domain/run/run.ts";
import { isErased } from "../ports/erasure.ts";
import type { Wait } from "../../domain/run/wait.ts";

/** What lists and trees show of a Run without reading its history; stored on the Run row. */
export interface RunSummary {
  readonly attempt: number;
  readonly steps: number;
  readonly usage: Usage;
  /** Usage of ended children and their descendants. */
  readonly childUsage: Usage;
  readonly openChildren: number;
  readonly children: number;
  readonly wait: Wait | null;
  readonly end: { readonly kind: string; readonly detail: string | null } | null;
  /** Version of the contract the Run works under; null without one. */
  readonly contractVersion: number | null;
  readonly goal: string | null;
}

export function runSummary(state: RunState): RunSummary {
  const { status } = state;
  return {
    attempt: state.attempt,
    steps: state.nextStep - 1,
    usage: state.usage,
    childUsage: state.childUsage,
    openChildren: state.delegations.open.length,
    children: state.delegations.total,
    wait: status.kind === "waiting" || status.kind === "awaiting" ? status.wait : null,
    end: status.kind === "ended" ? { kind: status.end.kind, detail: endDetail(state) } : null,
    contractVersion: state.header.origin?.contract.version ?? null,
    goal: state.header.origin?.contract.goal ?? null,
  };
}

export function encodeSummary(state: RunState): string {
  const summary = runSummary(state);
  const { usage, childUsage } = summary;
  return JSON.stringify({ ...summary, usage: usedOrNull(usage), childUsage: usedOrNull(childUsage) });
}

export function decodeSummary(text: string): RunSummary {
  if (isErased(text)) return ERASED;
  const summary = JSON.parse(text) as RunSummary & { usage: Usage | null; childUsage: Usage | null };
  return { ...summary, usage: summary.usage ?? NO_USAGE, childUsage: summary.childUsage ?? NO_USAGE };
}

/** Only Runs that have ended are erased; nothing else is known of one. */
const ERASED: RunSummary = {
  attempt: 0,
  steps: 0,
  usage: NO_USAGE,
  childUsage: NO_USAGE,
  openChildren: 0,
  children: 0,
  wait: null,
  end: { kind: "erased", detail: null },
  contractVersion: null,
  goal: null,
};

/** The Run's own usage and that of its ended descendants. */
export function totalUsage(state: RunState): Usage {
  return addUsage(state.usage, state.childUsage);
}

function endDetail(state: RunState): string | null {
  if (state.status.kind !== "ended") return null;
  const { end } = state.status;
  switch (end.kind) {
    case "completed":
      return null;
    case "failed":
      return `${end.error.code}: ${end.error.message}`;
    case "canceled":
    case "indeterminate":
      return end.reason;
    case "stopped":
      return `${end.reason}: ${end.detail}`;
    default:
      return end satisfies never;
  }
}
