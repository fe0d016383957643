import type { RunId } from "../../domain/id.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { SchemaOutput, StandardSchema } from "../../runtime/ports/standard-schema.ts";
import type { Tool } from "../../runtime/ports/tool.ts";

export interface CallOptions {
  /** Identifies the call on replay in place of its position: one call a Run, so the same key is the same call. */
  readonly key?: string;
}

export interface Question<S = JsonSchema | undefined> {
  readonly prompt: string;
  /** What the answer must fit; any JSON if omitted. */
  readonly schema?: S;
  /** Default `input_required`. */
  readonly kind?: "input_required" | "blocked" | "external";
  /** Milliseconds after which it can no longer be answered; never if omitted. */
  readonly deadlineMs?: number;
}

/**
 * What a durable function may do. Every call is recorded with its answer before the function sees it; after a crash or
 * a wait the function runs again from its start and gets the recorded answers in the order in which they were committed.
 * So between two calls it must do the same again: take time and chance from here, and effects to tools.
 */
export interface FunctionContext<Input = unknown> {
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly attempt: number;
  readonly user: string | null;
  /** What a parent asked for; null in a root Run. */
  readonly goal: string | null;
  /** Aborts when the Run is canceled or this worker lost it. Give it to whatever the function awaits by itself. */
  readonly signal: AbortSignal;
  /** @throws ErrandError `CALL_FAILED` with the tool's own error in `details` */
  tool<In, Out>(
    tool: Tool & { readonly types?: { readonly input: In; readonly output: Out } },
    input: NoInfer<In>,
    options?: CallOptions,
  ): Promise<Out>;
  /** Delegates to an agent of the roster and waits for its result. */
  run<In, Out>(
    agent: AgentDefinition<In, Out>,
    input: NoInfer<In>,
    options?: CallOptions & { readonly goal?: string },
  ): Promise<Out>;
  /** Asks a person; the Run is parked until the answer has come. Needs `mayAsk: true`. */
  ask<S extends StandardSchema>(
    question: Question<S> & { readonly schema: S },
    options?: CallOptions,
  ): Promise<SchemaOutput<S>>;
  ask(question: Question, options?: CallOptions): Promise<Json>;
  sleep(ms: number, options?: CallOptions): Promise<void>;
  /** Milliseconds of the store's clock, as of the step in which it is recorded. */
  now(options?: CallOptions): Promise<number>;
  /** From 0 to below 1. Not for secrets. */
  random(options?: CallOptions): Promise<number>;
  /** Runs `body` under its own numbering, so that what it calls is told apart from what runs beside it. */
  branch<T>(name: string, body: (ctx: FunctionContext<Input>) => T | Promise<T>): Promise<T>;
  /** Starts this Run's function over with a new input and an empty journal. Never returns. */
  continueAs(state: Input): Promise<never>;
  /** Best effort, never stored; silent while recorded calls are replayed. */
  progress(message: string, fraction?: number): void;
}
