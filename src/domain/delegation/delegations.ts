import { type Decision, accept, refuse, unchanged } from "../decision.ts";
import type { DelegationId, PublicationRef, RunId } from "../id.ts";
import { callKeyText } from "../tool-batch/call-key.ts";
import type { DelegationLimits } from "./limits.ts";

/*
 * The relationships that one parent Run holds. It owns identity, lineage, limits and cancel intent, never a tool result.
 *
 * D1 A relationship is Open, then perhaps CancelRequested, then Closed; closed is final (L17).
 * D2 The same request again is the same relationship; the same call with another target is a conflict (L14).
 * D3 Admission looks in one order: duplicate, conflict, ended, depth, cycle, slots, allowance.
 * D4 A parent's end asks every open child to cancel, once; it opens nothing afterwards.
 * D5 Open and CancelRequested both hold a slot; a slot is counted from what is open, so it cannot leak (K4.1).
 */

export interface Delegation {
  readonly delegationId: DelegationId;
  readonly childRunId: RunId;
  readonly step: number;
  readonly index: number;
  readonly target: string;
  readonly publication: PublicationRef;
  readonly contractVersion: number;
  readonly contractDigest: string;
  /** Runs of the tree that the child may use, itself included; returned when its result is consumed. */
  readonly treeRuns: number;
  readonly status: "open" | "cancel_requested";
}

export interface Delegations {
  readonly open: readonly Delegation[];
  readonly total: number;
  /** Runs of the tree that this Run and its ended children have used, itself included. */
  readonly treeRunsUsed: number;
  readonly parentEnded: boolean;
}

export const NO_DELEGATIONS: Delegations = { open: [], total: 0, treeRunsUsed: 1, parentEnded: false };

export type CloseReason = "consumed" | "discarded" | "child_missing" | "parent_ended";

export type DelegationFact =
  | ({ readonly type: "delegation_opened" } & Omit<Delegation, "status">)
  | {
      readonly type: "delegation_cancel_requested";
      readonly delegationId: DelegationId;
      readonly reason: string;
    }
  | {
      readonly type: "delegation_closed";
      readonly delegationId: DelegationId;
      readonly reason: CloseReason;
      readonly treeRunsUsed: number;
    };

export interface OpenRequest extends Omit<Delegation, "status"> {
  readonly limits: DelegationLimits;
  /** Runs of the tree granted to the parent. */
  readonly granted: number;
  /** The parent's own depth; a root is 0. */
  readonly depth: number;
  /** Agent names from the root to the parent, both included. */
  readonly lineage: readonly string[];
  readonly recursionAllowed: boolean;
}

export type DelegationCommand =
  | { readonly type: "open"; readonly request: OpenRequest }
  | { readonly type: "request_cancel"; readonly delegationId: DelegationId; readonly reason: string }
  | {
      readonly type: "close";
      readonly delegationId: DelegationId;
      readonly reason: CloseReason;
      readonly treeRunsUsed: number;
    }
  | { readonly type: "end_parent"; readonly reason: string };

export type DelegationRefusal =
  | "DELEGATION_CONFLICT"
  | "PARENT_ENDED"
  | "DEPTH_LIMIT"
  | "CYCLE"
  | "CHILDREN_LIMIT"
  | "PARALLEL_LIMIT"
  | "TREE_LIMIT"
  | "DELEGATION_CLOSED";

/** Runs of the tree that may still be carved: granted, less what is used and what open children hold. */
export function treeRunsLeft(state: Delegations, granted: number): number {
  return granted - state.treeRunsUsed - state.open.reduce((sum, one) => sum + one.treeRuns, 0);
}

export function decideDelegations(
  state: Delegations,
  command: DelegationCommand,
): Decision<DelegationFact, DelegationRefusal> {
  switch (command.type) {
    case "open":
      return admit(state, command.request);
    case "request_cancel": {
      const found = state.open.find((one) => one.delegationId === command.delegationId);
      if (found === undefined) return unchanged(); // a closed relationship is never reopened, not even to cancel it
      return found.status === "cancel_requested"
        ? unchanged()
        : accept({
            type: "delegation_cancel_requested",
            delegationId: command.delegationId,
            reason: command.reason,
          });
    }
    case "close": {
      const found = state.open.some((one) => one.delegationId === command.delegationId);
      return found
        ? accept({
            type: "delegation_closed",
            delegationId: command.delegationId,
            reason: command.reason,
            treeRunsUsed: command.treeRunsUsed,
          })
        : refuse("DELEGATION_CLOSED", `${command.delegationId} is closed or was never opened`);
    }
    case "end_parent":
      return accept(
        ...state.open
          .filter((one) => one.status === "open")
          .map((one) => ({
            type: "delegation_cancel_requested" as const,
            delegationId: one.delegationId,
            reason: command.reason,
          })),
      );
    default:
      return command satisfies never;
  }
}

function admit(state: Delegations, request: OpenRequest): Decision<DelegationFact, DelegationRefusal> {
  const { limits, granted, depth, lineage, recursionAllowed, ...relation } = request;
  const known = state.open.find((one) => one.step === request.step && one.index === request.index);
  if (known !== undefined) {
    return known.publication === request.publication && known.contractDigest === request.contractDigest
      ? unchanged()
      : refuse(
          "DELEGATION_CONFLICT",
          `call ${callKeyText(request)} already delegates to ${known.publication}`,
        );
  }
  if (state.parentEnded) return refuse("PARENT_ENDED", "the parent run has ended");
  if (depth + 1 > limits.maxDepth) {
    return refuse(
      "DEPTH_LIMIT",
      `depth ${depth + 1} is over the limit of ${limits.maxDepth} levels (maxDepth)`,
    );
  }
  if (!recursionAllowed && lineage.includes(request.target)) {
    return refuse(
      "CYCLE",
      `${request.target} is already at work above: ${[...lineage, request.target].join(" → ")}`,
    );
  }
  if (state.total + 1 > limits.maxChildren) {
    return refuse("CHILDREN_LIMIT", `this run has used its ${limits.maxChildren} children (maxChildren)`);
  }
  if (state.open.length + 1 > limits.maxParallelChildren) {
    return refuse(
      "PARALLEL_LIMIT",
      `${state.open.length} children are open, the limit is ${limits.maxParallelChildren} (maxParallelChildren)`,
    );
  }
  if (request.treeRuns < 1 || request.treeRuns > treeRunsLeft(state, granted)) {
    return refuse(
      "TREE_LIMIT",
      `no run is left of the ${granted} granted to this part of the tree (maxTreeRuns)`,
    );
  }
  return accept({ type: "delegation_opened", ...relation });
}

export function evolveDelegations(state: Delegations, fact: DelegationFact): Delegations {
  switch (fact.type) {
    case "delegation_opened": {
      const { type: _, ...relation } = fact;
      return { ...state, open: [...state.open, { ...relation, status: "open" }], total: state.total + 1 };
    }
    case "delegation_cancel_requested":
      return {
        ...state,
        open: state.open.map((one) =>
          one.delegationId === fact.delegationId ? { ...one, status: "cancel_requested" } : one,
        ),
      };
    case "delegation_closed":
      return {
        ...state,
        open: state.open.filter((one) => one.delegationId !== fact.delegationId),
        treeRunsUsed: state.treeRunsUsed + fact.treeRunsUsed,
      };
    default:
      return fact satisfies never;
  }
}
