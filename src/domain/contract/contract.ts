import type { Json } from "../../rules/json.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type { DelegationId, RunId } from "../id.ts";

/** What was agreed between parent and child, by version (L19). The output schema is its acceptance. */
export interface Contract {
  readonly delegationId: DelegationId;
  readonly version: number;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId;
  readonly childRunId: RunId;
  readonly goal: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/** The stored and exported form: the snake_case names of seed 002. */
export function contractJson(contract: Contract): Json {
  return {
    delegation_id: contract.delegationId,
    contract_version: contract.version,
    root_run_id: contract.rootRunId,
    parent_run_id: contract.parentRunId,
    child_run_id: contract.childRunId,
    goal: contract.goal,
    input_schema: contract.inputSchema,
    acceptance: { output_schema: contract.outputSchema },
  };
}

/** Digest of the stored form, by which facts refer to a contract. */
export function contractDigest(contract: Contract): string {
  return sha256Hex(canonicalJson(contractJson(contract)));
}
