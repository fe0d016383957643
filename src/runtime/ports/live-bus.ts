import type { DelegationId, RunId, TenantId } from "../../domain/id.ts";

/** Something that happens while a step is under way and is not committed: text as it is generated, progress of a tool. */
export type LiveDelta =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "tool_input"; readonly tool: string; readonly text: string }
  | {
      readonly kind: "progress";
      readonly tool: string;
      readonly message: string;
      readonly fraction: number | null;
    };

export interface TaggedDelta {
  readonly tenant: TenantId;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId | null;
  readonly runId: RunId;
  readonly delegationId: DelegationId | null;
  /** The call of the parent that caused this Run, as `step.index`; null for a root. */
  readonly parentCall: string | null;
  readonly delta: LiveDelta;
}

/** Best effort: a subscriber without it still sees every committed fact. Never goes through the store. */
export interface LiveBus {
  publish(delta: TaggedDelta): void;
  subscribe(listener: (delta: TaggedDelta) => void): () => void;
}
