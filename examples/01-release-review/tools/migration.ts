/** One numbered step of the database schema. */
export interface Migration {
  /** The number that leads the file name; steps run in its order. */
  readonly number: number;
  /** The file name without `.up.sql`, such as `0003_add_shipments`. */
  readonly name: string;
  readonly up: string;
  /** The way back; null when the release brings none. */
  readonly down: string | null;
}

/** All that the migration tests need, as file contents. */
export interface MigrationInput {
  /** The steps the running version has, in order. */
  readonly oldMigrations: readonly Migration[];
  /** The steps the release comes with, the old ones included, in order. */
  readonly newMigrations: readonly Migration[];
  /** Fills the old schema with data. */
  readonly seedSql: string;
  /** Statements of the running version, each led by a comment `-- name: …`; they keep running during the release. */
  readonly oldAppQueriesSql: string;
  /** Statements of the version to release. */
  readonly newAppQueriesSql: string;
}

/** The steps that the release adds. */
export function addedMigrations({ oldMigrations, newMigrations }: MigrationInput): readonly Migration[] {
  const known = new Set(oldMigrations.map((migration) => migration.name));
  return newMigrations.filter((migration) => !known.has(migration.name));
}
