import type { TenantId } from "../../domain/id.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { FeedEntry, FeedName, FeedPage } from "../../runtime/ports/store.ts";

/**
 * One feed of one tenant. Entries are only ever added at the end, so a position is a cursor that misses nothing (L7); the
 * position of one that was removed is not given again.
 */
export class Feed {
  #entries: { readonly position: number; readonly entry: FeedEntry }[] = [];
  /** Of the next entry. */
  #next = 0;
  readonly #label: string;

  constructor(storeId: string, tenant: TenantId, name: FeedName) {
    this.#label = `${storeId}:${tenant}:${name}`;
  }

  add(entry: FeedEntry): void {
    this.#entries.push({ position: this.#next, entry });
    this.#next += 1;
  }

  read(after: string | null, limit: number): FeedPage {
    const from = after === null ? 0 : this.#position(after);
    const start = this.#indexOf(from);
    const page = this.#entries.slice(start, start + Math.max(0, limit));
    const last = page.at(-1);
    const next = last === undefined ? from : last.position + 1;
    return { entries: page.map(({ entry }) => copy(entry)), cursor: encode(`${this.#label}:${next}`) };
  }

  /** Goes on counting where another stopped, so that its cursors stay good. */
  follow(other: Feed): void {
    this.#next = other.#next;
  }

  remove(isGone: (entry: FeedEntry) => boolean): void {
    this.#entries = this.#entries.filter(({ entry }) => !isGone(entry));
  }

  /** Of the first entry at the position or behind it. */
  #indexOf(position: number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.position ?? position) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #position(cursor: string): number {
    const text = Buffer.from(cursor, "base64url").toString("utf8");
    const at = text.lastIndexOf(":");
    const position = text.slice(at + 1);
    const known = text.slice(0, at) === this.#label && /^\d{1,15}$/.test(position) && encode(text) === cursor;
    if (!known || Number(position) > this.#next) {
      throw new ErrandError(
        "INVALID_INPUT",
        `The cursor ${JSON.stringify(cursor)} is from another database, or from another feed of this one.`,
        "Read the feed from its start (cursor null) and go on with the cursors of those pages.",
        { details: { cursor } },
      );
    }
    return Number(position);
  }
}

function encode(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}

function copy({ seq, at, entry }: FeedEntry): FeedEntry {
  return {
    seq,
    at,
    entry:
      entry.feed === "lifecycle"
        ? { feed: "lifecycle", row: { ...entry.row } }
        : { feed: "operational", event: { ...entry.event } },
  };
}
