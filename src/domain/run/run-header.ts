import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Contract } from "../contract/contract.ts";
import type { DelegationLimits } from "../delegation/limits.ts";
import type { DelegationId, PublicationRef, RunId, ThreadId } from "../id.ts";
import type { CallKey } from "../tool-batch/call-key.ts";

/** Where a child comes from; a root Run has none. */
export interface RunOrigin {
  readonly parentRunId: RunId;
  readonly delegationId: DelegationId;
  readonly call: CallKey;
  readonly contract: Contract;
}

/** What is fixed when a Run is created and never changes afterwards. */
export interface RunHeader {
  readonly runId: RunId;
  readonly threadId: ThreadId;
  readonly rootRunId: RunId;
  readonly origin: RunOrigin | null;
  /** 0 for a root. */
  readonly depth: number;
  /** Agent names from the root to this Run, this Run's own included. */
  readonly lineage: readonly string[];
  readonly agent: string;
  readonly publication: PublicationRef;
  readonly input: Json;
  /** What the result must fit before it counts: the contract's acceptance, or the agent's own output schema. */
  readonly outputSchema: JsonSchema;
  readonly limits: DelegationLimits;
  /** Runs of the tree that this Run may use, itself included. */
  readonly treeRuns: number;
  /** 0 to 9; a higher one is claimed as if it had waited a minute longer for each step. */
  readonly priority: number;
  readonly user: string | null;
}
