import { ErrandError } from "../../domain/errand-error.ts";
import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type {
  FeedEntry,
  FeedName,
  FeedPage,
  LogRow,
  OperationalEvent,
  Receipt,
} from "../../runtime/ports/store.ts";
import type { Reads } from "./reader.ts";

/** A place in a feed: `taken` of the entries numbered `seq` have been read, and all before. */
interface Position {
  readonly seq: number;
  readonly taken: number;
}

/** Numbers are handed out under the write lock, so nothing is ever committed behind a cursor (L7). */
export function readFeed(
  reads: Reads,
  storeId: string,
  tenant: TenantId,
  feed: FeedName,
  after: string | null,
  limit: number,
): FeedPage {
  const label = `${storeId}:${tenant}:${feed}`;
  const from = after === null ? { seq: 0, taken: 0 } : decode(label, after, lastSeq(reads));
  const found =
    feed === "lifecycle" ? lifecycle(reads, tenant, from, limit) : operational(reads, tenant, from, limit);
  const entries = found.slice(0, Math.max(0, limit));
  return { entries, cursor: encode(label, advance(from, entries)) };
}

function lastSeq(reads: Reads): number {
  return (reads.lastSeq.get() as { readonly seq: number }).seq;
}

function lifecycle(reads: Reads, tenant: TenantId, from: Position, limit: number): FeedEntry[] {
  const rows = reads.lifecycle.all(tenant, from.seq, limit) as LogRow[];
  return rows.map((row) => ({ seq: row.seq, at: row.at, entry: { feed: "lifecycle", row: { ...row } } }));
}

/** Workers' events, and the claims that commits granted, in the order of their numbers. */
function operational(reads: Reads, tenant: TenantId, from: Position, limit: number): FeedEntry[] {
  const wanted = limit + from.taken;
  const events = reads.events.all(tenant, from.seq, wanted) as (OperationalEvent & {
    readonly seq: number;
    readonly at: number;
  })[];
  const commits = reads.claims.all(tenant, from.seq, wanted) as {
    readonly seq: number;
    readonly at: number;
    readonly incarnation: IncarnationId;
    readonly receipt: string;
  }[];
  const entries: FeedEntry[] = [];
  for (const { seq, at, kind, incarnation, runId, epoch } of events) {
    entries.push(entryOf(seq, at, kind, incarnation, runId, epoch));
  }
  for (const { seq, at, incarnation, receipt } of commits) {
    for (const { runId, epoch } of (JSON.parse(receipt) as Receipt).claimed) {
      entries.push(entryOf(seq, at, "claimed", incarnation, runId, epoch));
    }
  }
  entries.sort((left, right) => left.seq - right.seq);
  const read = entries.findIndex((entry) => entry.seq > from.seq);
  return entries.slice(Math.min(from.taken, read === -1 ? entries.length : read));
}

function entryOf(
  seq: number,
  at: number,
  kind: OperationalEvent["kind"],
  incarnation: IncarnationId,
  runId: RunId | null,
  epoch: number | null,
): FeedEntry {
  return { seq, at, entry: { feed: "operational", event: { kind, incarnation, runId, epoch } } };
}

function advance(from: Position, entries: readonly FeedEntry[]): Position {
  const last = entries.at(-1);
  if (last === undefined) return from;
  const same = entries.filter((entry) => entry.seq === last.seq).length;
  return { seq: last.seq, taken: last.seq === from.seq ? from.taken + same : same };
}

function encode(label: string, { seq, taken }: Position): string {
  return Buffer.from(`${label}:${seq}:${taken}`, "utf8").toString("base64url");
}

function decode(label: string, cursor: string, last: number): Position {
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const found = /^(.*):(\d{1,15}):(\d{1,9})$/.exec(text);
  const position = { seq: Number(found?.[2]), taken: Number(found?.[3]) };
  if (found?.[1] === label && position.seq <= last && encode(label, position) === cursor) return position;
  throw new ErrandError(
    "INVALID_INPUT",
    `The cursor ${JSON.stringify(cursor)} is from another database, or from another feed of this one.`,
    "Read the feed from its start (cursor null) and go on with the cursors of those pages.",
    { details: { cursor } },
  );
}
