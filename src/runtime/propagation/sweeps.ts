import type { OperationId, TenantId } from "../../domain/id.ts";
import type { Committer } from "../commit/committer.ts";
import { encodeSignalCommit } from "../commit/encode-commit.ts";
import type { Store } from "../ports/store.ts";

const PAGE = 100;

/**
 * Delivers cancel intents that are recorded on a relationship and not yet on the child: one commit for each child, retried
 * until it stands, by anybody (L17). Returns how many were delivered.
 */
export async function deliverIntents(
  store: Store,
  committer: Committer,
  tenant: TenantId,
  signal: AbortSignal,
): Promise<number> {
  let delivered = 0;
  for (;;) {
    const rows = await store.pendingIntents(tenant, PAGE);
    let moved = 0;
    for (const row of rows) {
      signal.throwIfAborted();
      const outcome = await committer.commit(
        encodeSignalCommit({
          tenant,
          header: { runId: row.childRunId, rootRunId: row.rootRunId },
          operationId: `cancel:${row.delegationId}` as OperationId,
          fact: {
            type: "cancel_requested",
            reason: "the parent has ended or no longer waits",
            by: row.parentRunId,
          },
          ifEnded: "record",
          intentsDelivered: [row.delegationId],
        }),
        () => signal,
      );
      if (outcome.kind === "committed") moved++;
    }
    delivered += moved;
    if (moved === 0 || rows.length < PAGE) return delivered;
  }
}

/** Reports relationships whose child has no record, so that the parent goes on (L10). Returns how many were reported. */
export async function reportOrphans(
  store: Store,
  committer: Committer,
  tenant: TenantId,
  signal: AbortSignal,
): Promise<number> {
  const rows = await store.orphanedDelegations(tenant, PAGE);
  let reported = 0;
  for (const row of rows) {
    signal.throwIfAborted();
    const outcome = await committer.commit(
      encodeSignalCommit({
        tenant,
        header: { runId: row.parentRunId, rootRunId: row.rootRunId },
        operationId: `missing:${row.delegationId}` as OperationId,
        fact: { type: "child_missing", delegationId: row.delegationId },
        ifEnded: "record",
      }),
      () => signal,
    );
    if (outcome.kind === "committed") reported++;
  }
  return reported;
}
