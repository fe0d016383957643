import type { DelegationId, RunId } from "../../domain/id.ts";
import type { Delivery, InboxRow } from "../../runtime/ports/store.ts";
import { erasureMark } from "../../runtime/ports/erasure.ts";
import type { Mutable } from "./row.ts";

type Entry = Mutable<InboxRow>;

/**
 * The envelopes of one tenant, one a delegation. A result stands for good (L16); a wait or a resumption gives way to
 * whatever comes after it.
 */
export class InboxTable {
  readonly #byDelegation = new Map<DelegationId, Entry>();
  readonly #byParent = new Map<RunId, Set<Entry>>();
  readonly #unread = new Map<RunId, Set<Entry>>();

  deliver(
    tenant: InboxRow["tenant"],
    delivery: Delivery,
    status: "unread" | "discarded",
  ): "written" | "repeat" | "conflict" {
    const standing = this.#byDelegation.get(delivery.delegationId);
    if (standing?.kind === "result") return standing.digest === delivery.digest ? "repeat" : "conflict";
    if (standing !== undefined) this.#remove(standing);
    const { delegationId, parentRunId, childRunId, kind, digest, body } = delivery;
    const entry: Entry = { tenant, delegationId, parentRunId, childRunId, kind, digest, body, status };
    this.#byDelegation.set(delegationId, entry);
    add(this.#byParent, parentRunId, entry);
    if (status === "unread") add(this.#unread, parentRunId, entry);
    return "written";
  }

  /** Moves the entry if it has this digest; a newer one stays as it is. */
  read(delegationId: DelegationId, digest: string, status: "consumed" | "discarded"): void {
    const entry = this.#byDelegation.get(delegationId);
    if (entry?.digest !== digest) return;
    entry.status = status;
    remove(this.#unread, entry.parentRunId, entry);
  }

  unread(parentRunId: RunId): InboxRow[] {
    return copies(this.#unread.get(parentRunId));
  }

  list(parentRunId: RunId): InboxRow[] {
    return copies(this.#byParent.get(parentRunId));
  }

  hasUnread(parentRunId: RunId): boolean {
    return this.#unread.has(parentRunId);
  }

  erase(parentRunId: RunId): void {
    for (const entry of this.#byParent.get(parentRunId) ?? []) entry.body = erasureMark(entry.body);
  }

  removeAll(parentRunId: RunId): void {
    for (const entry of this.#byParent.get(parentRunId) ?? []) this.#byDelegation.delete(entry.delegationId);
    this.#byParent.delete(parentRunId);
    this.#unread.delete(parentRunId);
  }

  #remove(entry: Entry): void {
    remove(this.#byParent, entry.parentRunId, entry);
    remove(this.#unread, entry.parentRunId, entry);
  }
}

function add(index: Map<RunId, Set<Entry>>, key: RunId, entry: Entry): void {
  const entries = index.get(key);
  if (entries === undefined) index.set(key, new Set([entry]));
  else entries.add(entry);
}

function remove(index: Map<RunId, Set<Entry>>, key: RunId, entry: Entry): void {
  const entries = index.get(key);
  entries?.delete(entry);
  if (entries?.size === 0) index.delete(key);
}

function copies(entries: ReadonlySet<Entry> | undefined): InboxRow[] {
  return [...(entries ?? [])].map((entry) => ({ ...entry }));
}
