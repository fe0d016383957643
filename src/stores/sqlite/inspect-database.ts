import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { readMigrations, schemaVersion } from "../../sql/migrator.ts";
import { openSqlite } from "../../sql/sqlite-driver.ts";
import { storeError } from "./store-error.ts";

/** What a database file is, read without changing anything in it. */
export interface DatabaseReport {
  readonly path: string;
  readonly exists: boolean;
  /** Whether this user may write it, or its folder when there is no file yet. */
  readonly writable: boolean;
  /** Number of the last migration applied; 0 for a file that is not there. */
  readonly schema: number;
  /** Number of the last migration that this release knows. */
  readonly known: number;
  /** Names of the migrations to come. */
  readonly pending: readonly string[];
  /** `wal` once errand has opened it; null without a file. */
  readonly journalMode: string | null;
  readonly sqliteVersion: string | null;
}

const MIGRATIONS = new URL("./migrations/", import.meta.url);

/** @throws ErrandError the store's own STORE_* error */
export async function inspectDatabase(path: string): Promise<DatabaseReport> {
  const migrations = readMigrations(MIGRATIONS);
  const exists = existsSync(path);
  const report = { path, exists, writable: isWritable(exists ? path : existingFolder(path)) };
  const names = migrations.map((one) => one.name);
  if (!exists) {
    return {
      ...report,
      schema: 0,
      known: names.length,
      pending: names,
      journalMode: null,
      sqliteVersion: null,
    };
  }
  try {
    const db = await openSqlite(path);
    try {
      const schema = schemaVersion(db);
      const { journal_mode: journalMode } = db.prepare("PRAGMA journal_mode").get() as {
        journal_mode: string;
      };
      const { version } = db.prepare("SELECT sqlite_version() AS version").get() as { version: string };
      const pending = names.slice(schema);
      return { ...report, schema, known: names.length, pending, journalMode, sqliteVersion: version };
    } finally {
      db.close();
    }
  } catch (error) {
    throw storeError(path, error);
  }
}

function existingFolder(path: string): string {
  let folder = dirname(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
