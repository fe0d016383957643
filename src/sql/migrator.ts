import { readdirSync, readFileSync } from "node:fs";
import type { SqlDatabase } from "./sqlite-driver.ts";

export interface Migration {
  /** Numbered from 1 without a gap. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** Reads `000001_name.sql`, `000002_name.sql`, … of a folder. */
export function readMigrations(folder: URL): readonly Migration[] {
  const names = readdirSync(folder)
    .filter((name) => /^\d{6}_.+\.sql$/.test(name))
    .sort();
  return names.map((name, index) => {
    const number = Number(name.slice(0, 6));
    if (number !== index + 1) throw new Error(`Migration ${name} should have number ${index + 1}.`);
    return { number, name, sql: readFileSync(new URL(name, folder), "utf8") };
  });
}

export type MigrationOutcome =
  | { readonly kind: "migrated"; readonly from: number; readonly to: number }
  /** The database was written by a newer program; nothing was touched. */
  | { readonly kind: "newer"; readonly found: number; readonly known: number };

export function schemaVersion(db: SqlDatabase): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

/**
 * Brings the database to the last migration, each in its own transaction. `user_version` is read again once the write
 * lock is held, so of several processes that start at once one applies a migration and the others find it applied.
 * A held lock surfaces as SQLite's busy error, with nothing half done: call again.
 * @param stamp SQL that records a migration in the transaction that applies it
 */
export function migrate(
  db: SqlDatabase,
  migrations: readonly Migration[],
  stamp: (migration: Migration) => string,
): MigrationOutcome {
  const from = schemaVersion(db);
  const known = migrations.length;
  for (let version = from; version < known; version = schemaVersion(db)) {
    db.exec("BEGIN IMMEDIATE");
    try {
      const next = migrations[schemaVersion(db)];
      if (next !== undefined) db.exec(`${next.sql}\n${stamp(next)}\nPRAGMA user_version = ${next.number};`);
      db.exec("COMMIT");
    } catch (error) {
      db.exec("ROLLBACK");
      throw error;
    }
  }
  const to = schemaVersion(db);
  return to > known ? { kind: "newer", found: to, known } : { kind: "migrated", from, to };
}
