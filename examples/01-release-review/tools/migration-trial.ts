import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DatabaseSnapshot, schemaOf, snapshotOf } from "./database-snapshot.ts";
import type { Migration, MigrationInput } from "./migration.ts";
import { tryStatement } from "./old-application.ts";
import { withScratchFolder } from "./output-folder.ts";
import { inputError } from "./release-input-error.ts";
import { type NamedStatement, splitStatements } from "./sql-text.ts";
import { type SqlRow, type SqliteDatabase, inTransaction, openSqlite } from "./sqlite-database.ts";

/** A statement of the old application with the rows it gave before the migration. */
export interface ExpectedStatement {
  readonly statement: NamedStatement;
  readonly rows: readonly SqlRow[];
}

/** The state of the database before the release. */
export interface Baseline {
  readonly schema: readonly string[];
  readonly data: DatabaseSnapshot;
  readonly statements: readonly ExpectedStatement[];
  /** Rows that refer to a missing one already. */
  readonly danglingRows: number;
}

/** A real database in the state before the release, with a record of that state. */
export interface MigrationTrial {
  readonly database: SqliteDatabase;
  readonly baseline: Baseline;
  /** Applies migrations one by one, each whole or not at all. @returns why one failed, or undefined. */
  apply(direction: "up" | "down", migrations: readonly Migration[]): Promise<string | undefined>;
}

/**
 * Builds the old database in a file below `outDir`, hands it to `test`, and removes it.
 *
 * @throws ReleaseInputError when the old side itself does not run: then there is nothing to compare with.
 */
export async function withMigrationTrial<T>(
  input: MigrationInput,
  outDir: string,
  signal: AbortSignal | undefined,
  test: (trial: MigrationTrial) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  return await withScratchFolder(outDir, async (scratch) => {
    const database = await openSqlite(join(scratch, "trial.sqlite"));
    try {
      for (const migration of input.oldMigrations) {
        await takeTurn(signal);
        runOldSql(database, migration.up, `migrations/${migration.name}.up.sql`);
      }
      runOldSql(database, input.seedSql, "seed.sql");
      const baseline = recordBaseline(database, input.oldAppQueriesSql);
      return await test({ database, baseline, apply });
    } finally {
      database.close();
    }

    async function apply(
      direction: "up" | "down",
      migrations: readonly Migration[],
    ): Promise<string | undefined> {
      const steps = direction === "up" ? migrations : migrations.toReversed();
      for (const migration of steps) {
        await takeTurn(signal);
        const sql = migration[direction];
        const refusal = sql === null ? "there is no such file" : runScript(database, sql);
        if (refusal !== undefined) return `${migration.name}.${direction}.sql: ${refusal}`;
      }
      return undefined;
    }
  });
}

/** SQLite works synchronously: between two steps, others get their turn and an abort is noticed. */
export async function takeTurn(signal: AbortSignal | undefined): Promise<void> {
  await nextTurn();
  signal?.throwIfAborted();
}

/** Rows whose foreign key points at nothing; `table` and `parent` say where. */
export function findDanglingRows(database: SqliteDatabase): readonly SqlRow[] {
  return database.all("PRAGMA foreign_key_check");
}

function recordBaseline(database: SqliteDatabase, oldAppQueriesSql: string): Baseline {
  const statements = splitStatements(oldAppQueriesSql).map((statement): ExpectedStatement => {
    const outcome = tryStatement(database, statement);
    if (!outcome.ok) {
      const fix = "Correct the statement: it is what the old application does.";
      throw inputError(
        "before/app-queries.sql",
        `"${statement.name}" fails on the old database: ${outcome.reason}.`,
        fix,
      );
    }
    return { statement, rows: outcome.value };
  });
  return {
    schema: schemaOf(database),
    data: snapshotOf(database),
    statements,
    danglingRows: findDanglingRows(database).length,
  };
}

function runOldSql(database: SqliteDatabase, sql: string, file: string): void {
  const refusal = runScript(database, sql);
  if (refusal === undefined) return;
  throw inputError(
    `before/${file}`,
    `does not run: ${refusal}.`,
    "Correct it: the old database is built from it.",
  );
}

/** @returns why the script failed, or undefined. */
function runScript(database: SqliteDatabase, sql: string): string | undefined {
  const outcome = inTransaction(database, "keep", () => database.exec(sql));
  if (outcome.ok) return undefined;
  const hint = /transaction/.test(outcome.reason)
    ? " (each file runs in a transaction: leave BEGIN and COMMIT out)"
    : "";
  return outcome.reason + hint;
}
