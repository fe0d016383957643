import type { TenantId } from "../../domain/id.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { FeedEntry, FeedName, FeedPage } from "../../runtime/ports/store.ts";

/** One feed of one tenant. Entries are only ever added at the end, so a position is a cursor that misses nothing (L7). */
export class Feed {
  readonly #entries: FeedEntry[] = [];
  readonly #label: string;

  constructor(storeId: string, tenant: TenantId, name: FeedName) {
    this.#label = `${storeId}:${tenant}:${name}`;
  }

  add(entry: FeedEntry): void {
    this.#entries.push(entry);
  }

  read(after: string | null, limit: number): FeedPage {
    const from = after === null ? 0 : this.#position(after);
    const entries = this.#entries.slice(from, from + Math.max(0, limit)).map(copy);
    return { entries, cursor: encode(`${this.#label}:${from + entries.length}`) };
  }

  #position(cursor: string): number {
    const text = Buffer.from(cursor, "base64url").toString("utf8");
    const at = text.lastIndexOf(":");
    const position = text.slice(at + 1);
    const known = text.slice(0, at) === this.#label && /^\d{1,15}$/.test(position) && encode(text) === cursor;
    if (!known || Number(position) > this.#entries.length) {
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
