import { setTimeout as wait } from "node:timers/promises";
import { ErrandError } from "../../domain/errand-error.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import { type Migration, migrate, readMigrations, schemaVersion } from "../../sql/migrator.ts";
import { openSqlite, type SqlDatabase, sqliteTrouble } from "../../sql/sqlite-driver.ts";
import { storeError } from "./store-error.ts";

const MIGRATIONS = new URL("./migrations/", import.meta.url);

/** `Errd`, as the first migration sets it. */
const APPLICATION_ID = 0x45727264;

/** SQLite blocks the event loop while it waits for a lock, so it waits this long; the rest is waited outside. */
const BLOCKING_WAIT_MS = 5;

const RETRY_MS = 20;

export interface DatabaseOptions {
  readonly durability: "full" | "normal";
  readonly busyTimeoutMs: number;
  /** Test seam: sees the connection before anything is done with it. */
  readonly wrap?: (db: SqlDatabase) => SqlDatabase;
}

/** Opens the file, creating and migrating it as needed; waits for other processes that do the same. */
export async function openDatabase(path: string, options: DatabaseOptions): Promise<SqlDatabase> {
  if (path === "" || path.startsWith(":")) {
    throw new ErrandError(
      "INVALID_INPUT",
      `${JSON.stringify(path)} is not the path of a file.`,
      "Give the path of a database file, or use createMemoryStore() from errand/memory.",
    );
  }
  const deadline = performance.now() + options.busyTimeoutMs;
  for (;;) {
    try {
      return await openOnce(path, options);
    } catch (error) {
      if (sqliteTrouble(error) !== "busy" || performance.now() > deadline) throw storeError(path, error);
      await wait(RETRY_MS * (0.5 + Math.random()));
    }
  }
}

async function openOnce(path: string, options: DatabaseOptions): Promise<SqlDatabase> {
  const opened = await openSqlite(path);
  const db = options.wrap === undefined ? opened : options.wrap(opened);
  try {
    db.exec(`PRAGMA busy_timeout = ${BLOCKING_WAIT_MS}`);
    prepare(db, path, options.durability);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Nothing is changed in a file that is not ours, or that a newer release wrote. */
function prepare(db: SqlDatabase, path: string, durability: "full" | "normal"): void {
  const migrations = readMigrations(MIGRATIONS);
  const { application_id: application } = db.prepare("PRAGMA application_id").get() as {
    readonly application_id: number;
  };
  const { tables } = db.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as {
    readonly tables: number;
  };
  if (application !== APPLICATION_ID && tables > 0) {
    throw new ErrandError(
      "STORE_UNAVAILABLE",
      `${JSON.stringify(path)} is the database of another program.`,
      "Choose another path; nothing in the file was changed.",
      { details: { path } },
    );
  }
  refuseNewer(path, schemaVersion(db), migrations.length);
  const { journal_mode: mode } = db.prepare("PRAGMA journal_mode = WAL").get() as {
    readonly journal_mode: string;
  };
  if (mode !== "wal") {
    throw new ErrandError(
      "STORE_UNAVAILABLE",
      `SQLite cannot keep a write-ahead log beside ${JSON.stringify(path)} (journal mode ${mode}).`,
      "Put the file on a local file system; several hosts share a PostgreSQL database instead.",
      { details: { path } },
    );
  }
  db.exec(`
    PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"};
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -32768;
    PRAGMA temp_store = MEMORY;
  `);
  const outcome = migrate(db, migrations, stampOf);
  if (outcome.kind === "newer") refuseNewer(path, outcome.found, outcome.known);
  refuseOtherEdition(db, path, migrations);
}

function stampOf({ number, sql }: Migration): string {
  return `INSERT INTO meta (key, value) VALUES ('migration_${number}', '${sha256Hex(sql)}');`;
}

/** A migration that was edited after it was applied has made another schema than this program works on. */
function refuseOtherEdition(db: SqlDatabase, path: string, migrations: readonly Migration[]): void {
  const stamp = db.prepare("SELECT value FROM meta WHERE key = ?");
  for (const { number, name, sql } of migrations) {
    const row = stamp.get(`migration_${number}`) as { readonly value: string } | undefined;
    if (row?.value === sha256Hex(sql)) continue;
    throw new ErrandError(
      "STORE_CORRUPT",
      `The schema of ${JSON.stringify(path)} was made by another edition of ${name}.`,
      "Use the release that made the file, or choose another path; nothing in it was changed.",
      { details: { path, migration: name } },
    );
  }
}

function refuseNewer(path: string, found: number, known: number): void {
  if (found <= known) return;
  throw new ErrandError(
    "STORE_NEWER_SCHEMA",
    `${JSON.stringify(path)} has schema ${found}; this release knows schema ${known} and older.`,
    "Upgrade errand here to the release that wrote the file; nothing in it was changed.",
    { details: { path, found, known } },
  );
}
