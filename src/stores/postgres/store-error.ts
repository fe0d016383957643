import { ErrandError } from "../../domain/errand-error.ts";
import { type PostgresTrouble, postgresTrouble } from "../../sql/postgres-driver.ts";

type Kind = "STORE_UNAVAILABLE" | "STORE_BUSY" | "STORE_FULL" | "STORE_CORRUPT" | "INVALID_INPUT";

const KINDS: Readonly<Record<PostgresTrouble, readonly [Kind, string, string]>> = {
  passing: [
    "STORE_BUSY",
    "Rows that this call needs stayed locked or contended for too long; nothing of it was written.",
    "Look for a transaction that stays open (pg_stat_activity, state `idle in transaction`), then try again.",
  ],
  busy: [
    "STORE_BUSY",
    "PostgreSQL had no room for this call or cut it off; nothing of it was written.",
    "Check max_connections, statement_timeout and the server's load, then try again.",
  ],
  lost: [
    "STORE_UNAVAILABLE",
    "The connection to PostgreSQL could not be made or broke off; whether this call was carried out is unknown.",
    "Make the same call again under the same operation id: it answers with the first receipt if it was.",
  ],
  refused: [
    "STORE_UNAVAILABLE",
    "PostgreSQL does not let this user in, or lacks the database or a right on it.",
    "Check the connection string, that the database exists, and that its user may use the schema.",
  ],
  read_only: [
    "STORE_UNAVAILABLE",
    "This PostgreSQL server is read-only: a standby, or a primary that was demoted.",
    "Point the connection string at the primary, then try again.",
  ],
  schema: [
    "STORE_UNAVAILABLE",
    "The schema lacks a table or function that this release needs.",
    "Run `errand migrate`; if somebody has changed the schema by hand, restore it from a backup.",
  ],
  full: [
    "STORE_FULL",
    "PostgreSQL cannot write: its disk is full or failing; nothing of this call was written.",
    "Free space on the server's disk, then try again: the store stays usable.",
  ],
  corrupt: [
    "STORE_CORRUPT",
    "PostgreSQL reports damaged data.",
    "Stop the workers, take a copy of the data directory, and restore a backup.",
  ],
  content: [
    "INVALID_INPUT",
    "The call holds something that PostgreSQL cannot store.",
    "Give strings without NUL characters, whole numbers and null where the store port asks for them.",
  ],
  other: [
    "STORE_UNAVAILABLE",
    "PostgreSQL refused a statement.",
    "Run `errand doctor`; if the schema was changed by hand, restore it from a backup.",
  ],
};

/** Turns what the driver threw into an error that says what has happened and what to do next. */
export function storeError(cause: unknown): ErrandError {
  if (ErrandError.is(cause)) return cause;
  const [code, what, fix] = KINDS[postgresTrouble(cause)];
  const said = cause instanceof Error ? cause.message : String(cause);
  const sqlState = (cause as { readonly code?: unknown } | null)?.code ?? null;
  return new ErrandError(code, `${what.slice(0, -1)} (${said}).`, fix, { cause, details: { sqlState } });
}

export function closedError(): ErrandError {
  return new ErrandError(
    "STORE_CLOSED",
    "This PostgreSQL store has been closed.",
    "Open it again with createPostgresStore().",
  );
}
