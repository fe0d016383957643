import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { PublicationRef } from "../../domain/id.ts";
import type { DelegationLimits } from "../../domain/delegation/limits.ts";
import type { CarrierSession } from "./carrier.ts";
import type { Tool } from "./tool.ts";

/** An entry of a roster: an agent this one may delegate to. */
export interface RosterEntry {
  readonly agent: AgentDefinition;
  /** Allows the target although it is already at work above (a recursive descent with its own end). */
  readonly recursive?: boolean;
}

/**
 * An agent as a user defines it and as a worker loads it. `definition` is what is published: canonical, secret-free,
 * and together with the roster's digests it is the agent's identity (L32).
 */
export interface AgentDefinition<Input = unknown, Output = unknown> {
  readonly kind: "model" | "function" | "remote";
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly tools: readonly Tool[];
  readonly roster: readonly RosterEntry[];
  readonly limits: Partial<DelegationLimits>;
  /** Steps (model turns or function batches) after which the Run ends `stopped(limit)`. */
  readonly maxSteps: number;
  /** Attempts of one Run, the first included, before it ends `failed`. */
  readonly maxAttempts: number;
  /** True if the agent can ask a person by itself (`ask`); its tools' approvals and its roster are looked at apart. */
  readonly mayAsk: boolean;
  /** What to do when a child of a parallel batch awaits after all (L18): end `indeterminate`, or go on. */
  readonly onUnexpectedAwait: "indeterminate" | "continue";
  /** Secret-free description that is hashed and published. */
  readonly definition: Json;
  /** Checks and converts an input before anything is written. */
  parseInput(
    input: unknown,
  ): Promise<{ readonly ok: true; readonly value: Json } | { readonly ok: false; readonly message: string }>;
  open(): CarrierSession;
  /** Only for types: never set. */
  readonly types?: { readonly input: Input; readonly output: Output };
}

/** A published agent as a worker has it loaded. */
export interface LoadedAgent {
  readonly ref: PublicationRef;
  readonly definition: AgentDefinition;
  /** Roster by agent name, pinned to digests when published. */
  readonly roster: ReadonlyMap<string, { readonly ref: PublicationRef; readonly recursive: boolean }>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly limits: DelegationLimits;
  /** True only if nothing reachable from it can wait for a person: computed, not believed (L18). */
  readonly terminalOnly: boolean;
}
