import { sha256Hex } from "../../rules/sha256.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { OperationId, RunId, TenantId } from "../../domain/id.ts";
import type { SignalFact } from "../../domain/run/run-fact.ts";
import type { Committer } from "../commit/committer.ts";
import { encodeSignalCommit } from "../commit/encode-commit.ts";
import type { RunRow, Store } from "../ports/store.ts";

export type Control = "cancel" | "pause" | "continue";

export interface ControlOptions {
  readonly reason?: string;
  readonly by?: string;
  /** Makes a repeat of this very request the same request; without it each request is its own. */
  readonly requestId?: string;
}

/** The row, or the error that answers "absent" and "not yours" alike (L31). */
export async function existingRun(store: Store, tenant: TenantId, runId: RunId): Promise<RunRow> {
  const row = await store.getRun(tenant, runId);
  if (row === null) {
    throw new ErrandError(
      "NOT_FOUND",
      `There is no run ${runId}.`,
      "Check the id and the tenant; `errand ps` lists runs.",
    );
  }
  return row;
}

/**
 * Records a control on a Run as an intent; the Run obeys at its next safe point, and only its own committed fact
 * confirms that. On an ended Run it is kept for audit and changes nothing; the answer says which.
 */
export async function controlRun(
  store: Store,
  committer: Committer,
  tenant: TenantId,
  runId: RunId,
  control: Control,
  options: ControlOptions,
  draw: () => string,
  signal: AbortSignal,
): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
  const row = await existingRun(store, tenant, runId);
  const by = options.by ?? null;
  const reason = options.reason ?? "asked by the host";
  const fact: SignalFact =
    control === "cancel"
      ? { type: "cancel_requested", reason, by }
      : control === "pause"
        ? { type: "pause_requested", reason, by }
        : { type: "continue_requested", by };
  const id = options.requestId === undefined ? draw() : sha256Hex(options.requestId).slice(0, 24);
  const outcome = await committer.commit(
    encodeSignalCommit({
      tenant,
      header: row,
      operationId: `${control}:${runId}:${id}` as OperationId,
      fact,
      ifEnded: "record",
    }),
    () => signal,
  );
  if (outcome.kind === "conflict") {
    throw new ErrandError(
      "OPERATION_CONFLICT",
      `The request ${options.requestId} was sent before with other content.`,
      "Use another request id.",
    );
  }
  return { recorded: outcome.kind === "committed", ended: row.state === "ended" };
}
