import type { PublicationRef } from "../../domain/id.ts";
import type { PublicationRow } from "../../runtime/ports/store.ts";

/** The agent publications of one tenant, in the order in which they were published. */
export class PublicationTable {
  readonly #byRef = new Map<PublicationRef, PublicationRow>();
  readonly #heads = new Map<string, PublicationRow>();

  put({ ref, name, body }: Omit<PublicationRow, "publishedAt">, now: number): void {
    if (this.#byRef.has(ref)) return;
    const row: PublicationRow = { ref, name, body, publishedAt: now };
    this.#byRef.set(ref, row);
    this.#heads.set(name, row);
  }

  get(ref: PublicationRef): PublicationRow | null {
    return copy(this.#byRef.get(ref));
  }

  head(name: string): PublicationRow | null {
    return copy(this.#heads.get(name));
  }

  list(): PublicationRow[] {
    return [...this.#byRef.values()].map((row) => ({ ...row }));
  }
}

function copy(row: PublicationRow | undefined): PublicationRow | null {
  return row === undefined ? null : { ...row };
}
