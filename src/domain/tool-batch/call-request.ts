import type { Json } from "../../rules/json.ts";
import type { CallOutcome } from "./call-outcome.ts";

/**
 * What recovery may do with a call that began and has no recorded end (L10):
 * `never` answers it as Indeterminate, `safe` runs it again, `idempotent` runs it again under the same effect key,
 * `durable` reconnects to the same piece of work.
 */
export type ReplayPolicy = "never" | "safe" | "idempotent" | "durable";

/** What a tool does to the world. */
export type EffectClass = "none" | "read_only" | "idempotent" | "any";

/**
 * Who answers a call: a `tool`, a child Run (`delegation`), a person (`ask`), the clock (`sleep`),
 * or nobody because the answer was known when the call was published (`recorded`).
 */
export type CallKind = "tool" | "delegation" | "ask" | "sleep" | "recorded";

/** A call as it was published: stored once, replayed from the record, never asked of the model again (K1.6). */
export interface CallRequest {
  readonly kind: CallKind;
  readonly tool: string;
  readonly input: Json;
  /** The provider's own id, used only towards that provider. */
  readonly providerCallId?: string;
  /** Where a function agent issued it: branch path and ordinal, or the explicit key. */
  readonly site?: string;
  readonly replay: ReplayPolicy;
  readonly effect: EffectClass;
  /** A person must approve this very call and these arguments before it starts. */
  readonly approval?: boolean;
  /** Present exactly for `recorded` calls. */
  readonly answer?: CallOutcome;
}
