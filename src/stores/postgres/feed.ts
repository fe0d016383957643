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
import type { Database } from "./database.ts";

/** A place in a feed: all before (xid, seq) has been read, and `taken` of the entries that stand there. */
interface Position {
  readonly xid: string;
  readonly seq: number;
  readonly taken: number;
}

/** Every row of a page, or one with nulls when there is none. */
interface Stored {
  readonly place: string;
  readonly xmax: string;
  readonly hidden: boolean;
  readonly xid: string | null;
  readonly seq: number;
}

const START: Position = { xid: "0", seq: 0, taken: 0 };

/** How long a page that is not full waits for entries which are committed but not yet safe to show. */
const SETTLE_MS = 100;
const SETTLE_WAIT_MS = 2;

/**
 * Feeds are in the order of transaction ids and are read below the oldest transaction that is still open, so nothing is
 * ever committed behind a cursor (L7).
 */
export async function readFeed(
  database: Database,
  tenant: TenantId,
  feed: FeedName,
  after: string | null,
  limit: number,
): Promise<FeedPage> {
  const from = after === null ? START : parse(after);
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const wanted = Math.max(0, limit) + from.taken;
    const rows = await database.call<Stored>(`${feed}_feed`, [tenant, from.xid, from.seq, wanted]);
    const [head] = rows;
    const label = `${head?.place}:${tenant}:${feed}`;
    if (after !== null) check(after, label, from, head?.xmax ?? "0");
    const found = rows.filter((row) => row.xid !== null);
    const read = feed === "lifecycle" ? lifecycle(found) : operational(found, from);
    const page = read.slice(0, Math.max(0, limit));
    const isShort = page.length < limit && head?.hidden === true;
    if (!isShort || performance.now() > deadline) {
      const cursor = encode(label, advance(from, page));
      return { entries: page.map(({ entry }) => entry), cursor };
    }
    await new Promise((resolve) => setTimeout(resolve, SETTLE_WAIT_MS));
  }
}

interface Placed {
  readonly xid: string;
  readonly entry: FeedEntry;
}

function lifecycle(rows: readonly Stored[]): Placed[] {
  return rows.map(({ place: _place, xmax: _xmax, hidden: _hidden, xid, ...rest }) => {
    const row = rest as unknown as LogRow;
    return { xid: xid ?? "0", entry: { seq: row.seq, at: row.at, entry: { feed: "lifecycle", row } } };
  });
}

type Event = Stored & {
  readonly at: number;
  readonly kind: OperationalEvent["kind"];
  readonly incarnation: IncarnationId;
  readonly runId: RunId | null;
  readonly epoch: number | null;
  readonly receipt: string | null;
};

function operational(rows: readonly Stored[], from: Position): Placed[] {
  const placed: Placed[] = [];
  for (const row of rows as readonly Event[]) {
    const { xid, seq, at, kind, incarnation, runId, epoch, receipt } = row;
    const told =
      receipt === null
        ? [{ kind, incarnation, runId, epoch }]
        : (JSON.parse(receipt) as Receipt).claimed.map((run) => ({
            kind,
            incarnation,
            runId: run.runId,
            epoch: run.epoch,
          }));
    const isStart = xid === from.xid && seq === from.seq;
    for (const event of isStart ? told.slice(from.taken) : told) {
      placed.push({ xid: xid ?? "0", entry: { seq, at, entry: { feed: "operational", event } } });
    }
  }
  return placed;
}

function advance(from: Position, page: readonly Placed[]): Position {
  const last = page.at(-1);
  if (last === undefined) return from;
  const { xid } = last;
  const { seq } = last.entry;
  const same = page.filter((one) => one.xid === xid && one.entry.seq === seq).length;
  return { xid, seq, taken: xid === from.xid && seq === from.seq ? from.taken + same : same };
}

function encode(label: string, { xid, seq, taken }: Position): string {
  return Buffer.from(`${label}:${xid}:${seq}:${taken}`, "utf8").toString("base64url");
}

const CURSOR = /^.*:(\d{1,20}):(\d{1,15}):(\d{1,9})$/;

function parse(cursor: string): Position {
  const found = CURSOR.exec(Buffer.from(cursor, "base64url").toString("utf8"));
  if (found === null) throw foreign(cursor);
  return { xid: found[1] ?? "0", seq: Number(found[2]), taken: Number(found[3]) };
}

/** Refused: a cursor of another feed, tenant, database or timeline, and one that points past all that has happened. */
function check(cursor: string, label: string, from: Position, xmax: string): void {
  if (encode(label, from) !== cursor || BigInt(from.xid) >= BigInt(xmax)) throw foreign(cursor);
}

function foreign(cursor: string): ErrandError {
  return new ErrandError(
    "INVALID_INPUT",
    `The cursor ${JSON.stringify(cursor)} is from another database, from one before it was restored or promoted, or from another feed.`,
    "Read the feed from its start (cursor null) and go on with the cursors of those pages.",
    { details: { cursor } },
  );
}
