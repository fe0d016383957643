import type { DelegationId } from "../../domain/id.ts";
import type { Commit, InboxRow } from "../../runtime/ports/store.ts";
import { raiseSignal } from "./run-state.ts";
import { type RunsAtWork } from "./runs-at-work.ts";
import type { Transaction } from "./transaction.ts";

const NO_CONFLICTS: readonly DelegationId[] = [];

/**
 * Writes the commit's envelopes and read marks. A result stands once it is there: the same again is nothing, another is
 * a conflict and returned as such (L16); news of a wait gives way to whatever comes after it.
 */
export function deliver(tx: Transaction, commit: Commit, runs: RunsAtWork): readonly DelegationId[] {
  const { sql, now } = tx;
  const { tenant } = commit;
  let conflicts = NO_CONFLICTS;
  for (const delivery of commit.deliver) {
    const { delegationId, parentRunId, childRunId, kind, digest, body } = delivery;
    const found = sql.findEnvelope.get(tenant, delegationId) as
      | { readonly kind: InboxRow["kind"]; readonly digest: string }
      | undefined;
    if (found?.kind === "result") {
      if (found.digest !== digest) conflicts = conflicts.concat(delegationId);
      continue;
    }
    const parent = runs.load(parentRunId);
    const live = parent !== null && parent.endedAt === null;
    const status = live ? "unread" : "discarded";
    const parentNo = parent === null ? 0 : parent.runNo;
    sql.putEnvelope.run(tenant, delegationId, parentNo, parentRunId, childRunId, kind, digest, status, body);
    if (parent === null) continue;
    if (kind === "result" && !live) sql.closeDelegation.run(tenant, delegationId);
    raiseSignal(parent, now, false);
    if (parent.state === "running") tx.hint(tenant, parentRunId, "signal");
    else if (parent.state === "ready") tx.hint(tenant, parentRunId, "ready");
  }
  for (const { delegationId, digest, status } of commit.readInbox) {
    sql.readEnvelope.run(status, tenant, delegationId, digest);
  }
  return conflicts;
}
