import { sha256Hex } from "../../rules/sha256.ts";
import type { DelegationId, RunId, ThreadId } from "../id.ts";
import type { CallKey } from "../tool-batch/call-key.ts";

/** The identities that one delegating call names, whoever derives them and however often (L12). */
export interface DerivedIds {
  readonly delegationId: DelegationId;
  readonly childRunId: RunId;
  readonly childThreadId: ThreadId;
}

/**
 * The same call always names the same delegation and the same child, so a restart finds them instead of making others.
 * Half of one SHA-256 for each: fixed length at any depth.
 */
export function derivedIds(parent: RunId, call: CallKey): DerivedIds {
  const digest = sha256Hex(`delegation:${parent}:${call.step}.${call.index}`);
  const child = digest.slice(32);
  return {
    delegationId: `del_${digest.slice(0, 32)}` as DelegationId,
    childRunId: `run_${child}` as RunId,
    childThreadId: `thr_${child}` as ThreadId,
  };
}
