import { normalizeSql, quoteName } from "./sql-text.ts";
import type { SqlRow, SqlValue, SqliteDatabase } from "./sqlite-database.ts";

/** The content of one table, held in memory. */
export interface TableSnapshot {
  /** The name as written in the schema. */
  readonly name: string;
  readonly columns: readonly string[];
  /** Columns computed by the database, which nobody can write. */
  readonly generatedColumns: readonly string[];
  readonly primaryKey: readonly string[];
  readonly rows: readonly SqlRow[];
}

/** The tables of a database by lower-case name. */
export type DatabaseSnapshot = ReadonlyMap<string, TableSnapshot>;

/** Information that one snapshot holds and a later one does not. */
export type DataLoss =
  | { readonly kind: "table_dropped"; readonly table: string; readonly rows: number }
  | {
      readonly kind: "column_dropped";
      readonly table: string;
      readonly column: string;
      readonly values: number;
    }
  | { readonly kind: "rows_removed"; readonly table: string; readonly rows: number }
  | {
      readonly kind: "values_changed";
      readonly table: string;
      readonly column: string;
      readonly values: number;
    };

export function snapshotOf(database: SqliteDatabase): DatabaseSnapshot {
  const tables = new Map<string, TableSnapshot>();
  const names = database.all(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
  );
  for (const name of names.map((row) => String(row.name))) {
    const columns = database.all(`PRAGMA table_xinfo(${quoteName(name)})`);
    const keyColumns = columns.filter((column) => Number(column.pk) > 0);
    tables.set(name.toLowerCase(), {
      name,
      columns: columns.map(columnName),
      generatedColumns: columns.filter((column) => Number(column.hidden) >= 2).map(columnName),
      primaryKey: keyColumns.toSorted((a, b) => Number(a.pk) - Number(b.pk)).map(columnName),
      rows: database.all(`SELECT * FROM ${quoteName(name)}`).map(withLowerCaseNames),
    });
  }
  return tables;
}

/** The definitions of tables, indexes, views and triggers in one spelling, sorted: equal lists mean equal schemas. */
export function schemaOf(database: SqliteDatabase): readonly string[] {
  return database
    .all("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
    .map((row) => normalizeSql(String(row.sql)))
    .toSorted();
}

/**
 * What `before` holds and `after` does not, judged by the rows themselves: dropping an empty table or a column of nulls loses nothing,
 * and neither does renaming a table or a column whose content arrives whole under the new name in the same place.
 */
export function findDataLoss(before: DatabaseSnapshot, after: DatabaseSnapshot): readonly DataLoss[] {
  const losses: DataLoss[] = [];
  const newTables = [...after].filter(([key]) => !before.has(key)).map(([, table]) => table);
  for (const [key, table] of before) {
    const next = after.get(key);
    if (next) {
      losses.push(...compareTable(table, next));
    } else if (table.rows.length > 0 && !newTables.some((other) => holdsAll(table, other))) {
      losses.push({ kind: "table_dropped", table: table.name, rows: table.rows.length });
    }
  }
  return losses;
}

/** One spelling for a value, in which values of different SQL types never coincide. */
export function encodeValue(value: SqlValue | undefined): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return `${value}e0`;
  return String(value ?? null);
}

function holdsAll(table: TableSnapshot, other: TableSnapshot): boolean {
  return (
    table.columns.every((column) => other.columns.includes(column)) && compareTable(table, other).length === 0
  );
}

function compareTable(before: TableSnapshot, after: TableSnapshot): readonly DataLoss[] {
  const kept = before.columns.filter((column) => after.columns.includes(column));
  const keyed = before.primaryKey.length > 0 && before.primaryKey.every((column) => kept.includes(column));
  // Without a usable key a row is known by all it holds, and a changed row counts as a removed one.
  const key = keyed ? before.primaryKey : kept;
  const later = indexRows(after.rows, key);
  const pairs: (readonly [SqlRow, SqlRow])[] = [];
  for (const [id, row] of indexRows(before.rows, key)) {
    const match = later.get(id);
    if (match) pairs.push([row, match]);
  }

  const losses: DataLoss[] = [];
  const removed = before.rows.length - pairs.length;
  if (removed > 0) losses.push({ kind: "rows_removed", table: before.name, rows: removed });
  for (const column of kept) {
    const values = pairs.filter(([was, is]) => !isSame(was[column], is[column])).length;
    if (values > 0) losses.push({ kind: "values_changed", table: before.name, column, values });
  }
  const added = after.columns.filter((column) => !before.columns.includes(column));
  for (const column of before.columns.filter((name) => !kept.includes(name))) {
    const values = pairs.filter(([was]) => was[column] !== null).length;
    const movedOn = added.some((name) => pairs.every(([was, is]) => isSame(was[column], is[name])));
    if (values > 0 && !movedOn) losses.push({ kind: "column_dropped", table: before.name, column, values });
  }
  return losses;
}

/** Rows by key. Equal keys are told apart by how often they came before, so that duplicates count. */
function indexRows(rows: readonly SqlRow[], key: readonly string[]): ReadonlyMap<string, SqlRow> {
  const seen = new Map<string, number>();
  const index = new Map<string, SqlRow>();
  for (const row of rows) {
    const id = key.map((column) => encodeValue(row[column])).join(",");
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    index.set(`${id}#${count}`, row);
  }
  return index;
}

function columnName(column: SqlRow): string {
  return String(column.name).toLowerCase();
}

function isSame(a: SqlValue | undefined, b: SqlValue | undefined): boolean {
  return encodeValue(a) === encodeValue(b);
}

function withLowerCaseNames(row: SqlRow): SqlRow {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));
}
