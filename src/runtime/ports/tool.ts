import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { RunId, TenantId } from "../../domain/id.ts";
import type { CallOutcome } from "../../domain/tool-batch/call-outcome.ts";
import type { EffectClass, ReplayPolicy } from "../../domain/tool-batch/call-request.ts";

/** What a tool may know of the call that runs it. */
export interface ToolCallContext {
  readonly tenant: TenantId;
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly agent: string;
  /** Stable for the call over every execution of it: give it to whatever deduplicates (L10). */
  readonly effectKey: string;
  /** 1 the first time; higher when recovery runs a replayable call again. */
  readonly execution: number;
  readonly user: string | null;
  /** Best-effort progress for whoever watches; never stored. */
  progress(message: string, fraction?: number): void;
}

/** A tool as the runtime runs it, whatever it was defined with. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly replay: ReplayPolicy;
  readonly effect: EffectClass;
  /** May run at the same time as its siblings that also may. */
  readonly parallel: boolean;
  readonly timeoutMs: number;
  /** How often recovery may begin one call, the first time included. */
  readonly maxExecutions: number;
  /** True if this call, with this input, needs a person's approval. Pure: decided once, when the call is published. */
  approval(input: Json): boolean;
  /** True if `approval` can ever answer true; such an agent may wait. */
  readonly mayNeedApproval: boolean;
  /** What the approver is shown. */
  approvalPrompt(input: Json): string;
  /** Checks and converts the input; a refusal is the call's answer and nothing starts. */
  parse(
    input: Json,
  ): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string };
  run(value: unknown, context: ToolCallContext, signal: AbortSignal): Promise<CallOutcome>;
  /** For `durable` tools: finds the work that was started under the effect key and its outcome. */
  reconnect?(value: unknown, context: ToolCallContext, signal: AbortSignal): Promise<CallOutcome>;
}
