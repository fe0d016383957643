import { reasonOf } from "./release-input-error.ts";

/** A value as SQLite stores it; integers arrive as bigint, so none loses digits. */
export type SqlValue = null | bigint | number | string | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** The part of a SQLite driver that this example needs. */
export interface SqliteDatabase {
  /** Runs any number of statements. */
  exec(sql: string): void;
  /** Runs one statement and returns the rows it gives. */
  all(sql: string, ...parameters: readonly SqlValue[]): readonly SqlRow[];
  close(): void;
}

interface Statement {
  all(...parameters: readonly SqlValue[]): unknown[];
  setReadBigInts(enabled: boolean): void;
}

interface Driver {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
  setAuthorizer?(decide: (action: number) => number): void;
}

interface DriverModule {
  readonly DatabaseSync: new (file: string) => Driver;
}

/**
 * Opens a SQLite file, creating it when it is not there. Foreign keys are not enforced, as SQLite advises for schema changes;
 * `PRAGMA foreign_key_check` finds what is broken.
 * Statements that would open a second file are refused where the driver can do so: the SQL under review is not ours.
 */
export async function openSqlite(file: string): Promise<SqliteDatabase> {
  const { DatabaseSync } = await loadDriver();
  const driver = new DatabaseSync(file);
  const [attach, allow, deny] = [24, 0, 1];
  driver.setAuthorizer?.((action) => (action === attach ? deny : allow));
  // The file is scratch: a power cut may lose it.
  driver.exec("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF");
  return {
    exec: (sql) => driver.exec(sql),
    all: (sql, ...parameters) => {
      const statement = driver.prepare(sql);
      statement.setReadBigInts(true);
      return statement.all(...parameters) as SqlRow[];
    },
    close: () => driver.close(),
  };
}

export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  /** The database's own words. */
  | { readonly ok: false; readonly reason: string };

/** Runs the action in a transaction of its own. A refusal by the database is an outcome; it leaves nothing behind. */
export function inTransaction<T>(
  database: SqliteDatabase,
  end: "keep" | "undo",
  action: () => T,
): Outcome<T> {
  database.exec("BEGIN");
  try {
    const value = action();
    if (end === "keep") database.exec("COMMIT");
    return { ok: true, value };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  } finally {
    rollBackIfOpen(database);
  }
}

/** Some refusals, and statements under review, end the transaction by themselves. */
function rollBackIfOpen(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch (error) {
    if (!/no transaction is active/.test(reasonOf(error))) throw error;
  }
}

/** SQLite comes with Node from version 22 on; before that, from a package with the same interface. */
async function loadDriver(): Promise<DriverModule> {
  const builtIn: unknown = process.getBuiltinModule("node:sqlite");
  return (builtIn ?? (await import("@photostructure/sqlite"))) as DriverModule;
}
