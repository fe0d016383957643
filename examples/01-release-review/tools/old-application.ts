import { type TableSnapshot, encodeValue } from "./database-snapshot.ts";
import { type NamedStatement, quoteName } from "./sql-text.ts";
import {
  type Outcome,
  type SqlRow,
  type SqlValue,
  type SqliteDatabase,
  inTransaction,
} from "./sqlite-database.ts";

/** How many rows of each table are written again to see whether the old way of writing still works. */
const REWRITTEN_ROWS_PER_TABLE = 50;

/** Runs one statement and undoes whatever it wrote. */
export function tryStatement(database: SqliteDatabase, { sql }: NamedStatement): Outcome<readonly SqlRow[]> {
  return inTransaction(database, "undo", () => database.all(sql));
}

/**
 * Compares what one statement gives before and after the migration. Columns that are new and a different order of rows are fine.
 *
 * @returns what is wrong for the old application, or undefined when it notices nothing.
 */
export function describeDifference(
  was: readonly SqlRow[],
  outcome: Outcome<readonly SqlRow[]>,
): string | undefined {
  if (!outcome.ok) return outcome.reason;
  const is = outcome.value;
  if (was.length !== is.length) return `gave ${was.length} rows and gives ${is.length}`;
  const [first = {}] = was;
  const columns = Object.keys(first);
  const lost = columns.filter((column) => !Object.hasOwn(is[0] ?? {}, column));
  if (lost.length > 0) return `no longer gives ${lost.join(", ")}`;
  const [before, after] = [was, is].map((rows) => rows.map((row) => encodeRow(row, columns)).toSorted());
  return before?.some((row, index) => row !== after?.[index]) ? "gives other values" : undefined;
}

/**
 * Writes existing rows once more, naming only the columns the old application knows, and undoes it. This finds new obligations
 * (a column that may not be null and has no default, a stricter check, a new unique index) by trying, whatever SQL introduced them.
 *
 * @returns why the database refuses the first row it refuses, or undefined when it takes them all.
 */
export function tryOldWrites(database: SqliteDatabase, table: TableSnapshot): string | undefined {
  const columns = table.columns.filter((column) => !table.generatedColumns.includes(column));
  const list = columns.map(quoteName).join(", ");
  const marks = columns.map(() => "?").join(", ");
  for (const row of table.rows.slice(0, REWRITTEN_ROWS_PER_TABLE)) {
    const values = columns.map((column) => row[column] ?? null);
    const outcome = inTransaction(database, "undo", () => {
      removeRow(database, table, columns, row);
      return database.all(`INSERT INTO ${quoteName(table.name)} (${list}) VALUES (${marks})`, ...values);
    });
    if (!outcome.ok) return outcome.reason;
  }
  return undefined;
}

function removeRow(
  database: SqliteDatabase,
  table: TableSnapshot,
  columns: readonly string[],
  row: SqlRow,
): void {
  const key = table.primaryKey.length > 0 ? table.primaryKey : columns;
  const condition = key.map((column) => `${quoteName(column)} IS ?`).join(" AND ");
  const values = key.map((column): SqlValue => row[column] ?? null);
  database.all(`DELETE FROM ${quoteName(table.name)} WHERE ${condition}`, ...values);
}

function encodeRow(row: SqlRow, columns: readonly string[]): string {
  return columns.map((column) => encodeValue(row[column])).join(",");
}
