import type { DelegationId, RunId } from "../../domain/id.ts";
import type { Commit, DelegationRow } from "../../runtime/ports/store.ts";
import { bucket, type Mutable } from "./row.ts";

type Entry = Mutable<DelegationRow>;

/** The relationships of one tenant. Closed is final, and opening one that is there changes nothing. */
export class DelegationTable {
  readonly #byId = new Map<DelegationId, Entry>();
  readonly #byParent = new Map<RunId, Entry[]>();
  readonly #byRoot = new Map<RunId, Entry[]>();
  readonly #pendingIntents = new Set<Entry>();
  /** Open relationships by the child that has no Run row. */
  readonly #childless = new Map<RunId, Entry>();

  get(delegationId: DelegationId): DelegationRow | null {
    const entry = this.#byId.get(delegationId);
    return entry === undefined ? null : { ...entry };
  }

  open(
    tenant: DelegationRow["tenant"],
    given: Commit["openDelegations"][number],
    childExists: (runId: RunId) => boolean,
  ): void {
    if (this.#byId.has(given.delegationId)) return;
    const entry: Entry = {
      tenant,
      delegationId: given.delegationId,
      rootRunId: given.rootRunId,
      parentRunId: given.parentRunId,
      childRunId: given.childRunId,
      step: given.step,
      index: given.index,
      target: given.target,
      status: "open",
      contractVersion: given.contractVersion,
      contractDigest: given.contractDigest,
      intentDelivered: false,
    };
    this.#byId.set(entry.delegationId, entry);
    bucket(this.#byParent, entry.parentRunId).push(entry);
    bucket(this.#byRoot, entry.rootRunId).push(entry);
    if (!childExists(entry.childRunId)) this.#childless.set(entry.childRunId, entry);
  }

  requestCancel(delegationId: DelegationId): void {
    const entry = this.#byId.get(delegationId);
    if (entry?.status !== "open") return;
    entry.status = "cancel_requested";
    if (!entry.intentDelivered) this.#pendingIntents.add(entry);
    this.#childless.delete(entry.childRunId);
  }

  close(delegationId: DelegationId): void {
    const entry = this.#byId.get(delegationId);
    if (entry === undefined) return;
    entry.status = "closed";
    this.#pendingIntents.delete(entry);
    this.#childless.delete(entry.childRunId);
  }

  intentDelivered(delegationId: DelegationId): void {
    const entry = this.#byId.get(delegationId);
    if (entry === undefined) return;
    entry.intentDelivered = true;
    this.#pendingIntents.delete(entry);
  }

  childCreated(runId: RunId): void {
    this.#childless.delete(runId);
  }

  pendingIntents(limit: number): DelegationRow[] {
    return take(this.#pendingIntents, limit, () => true);
  }

  orphaned(limit: number, isLive: (parent: RunId) => boolean): DelegationRow[] {
    return take(this.#childless.values(), limit, (entry) => isLive(entry.parentRunId));
  }

  hasPendingIntent(rootRunId: RunId): boolean {
    return (this.#byRoot.get(rootRunId) ?? []).some((entry) => this.#pendingIntents.has(entry));
  }

  remove(roots: ReadonlySet<RunId>): void {
    for (const root of roots) {
      for (const entry of this.#byRoot.get(root) ?? []) {
        this.#byId.delete(entry.delegationId);
        this.#byParent.delete(entry.parentRunId);
        this.#pendingIntents.delete(entry);
        this.#childless.delete(entry.childRunId);
      }
      this.#byRoot.delete(root);
    }
  }

  list(filter: {
    readonly rootRunId?: RunId;
    readonly parentRunId?: RunId;
    readonly limit: number;
  }): DelegationRow[] {
    const { rootRunId, parentRunId, limit } = filter;
    if (parentRunId !== undefined) {
      const entries = this.#byParent.get(parentRunId) ?? [];
      return take(entries, limit, (entry) => rootRunId === undefined || entry.rootRunId === rootRunId);
    }
    const entries = rootRunId === undefined ? this.#byId.values() : (this.#byRoot.get(rootRunId) ?? []);
    return take(entries, limit, () => true);
  }
}

function take(entries: Iterable<Entry>, limit: number, accepts: (entry: Entry) => boolean): DelegationRow[] {
  const rows: DelegationRow[] = [];
  for (const entry of entries) {
    if (rows.length >= limit) break;
    if (accepts(entry)) rows.push({ ...entry });
  }
  return rows;
}
