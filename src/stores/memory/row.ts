import type { Receipt } from "../../runtime/ports/store.ts";

/** Rows are read-only to everybody else; the table that owns them writes its own copy. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The list kept under a key, made when it is first asked for. */
export function bucket<K, V>(index: Map<K, V[]>, key: K): V[] {
  let list = index.get(key);
  if (list === undefined) {
    list = [];
    index.set(key, list);
  }
  return list;
}

export function copyReceipt(receipt: Receipt): Receipt {
  return {
    ...receipt,
    claimed: receipt.claimed.map((run) => ({ ...run })),
    conflicts: [...receipt.conflicts],
  };
}
