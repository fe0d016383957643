/*
 * The SQLite driver as this project sees it: exec, prepare, run, get/all, close. `node:sqlite` has this shape, and so
 * has its drop-in package for a Node that lacks the module.
 */

export type SqlValue = string | number | null;

export interface SqlStatement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  /** The first row as an object keyed by column alias, or undefined. */
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}

export interface SqlDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
  close(): void;
}

type Driver = { readonly DatabaseSync: new (path: string) => SqlDatabase };

async function loadDriver(): Promise<Driver> {
  const builtIn = process.getBuiltinModule("node:sqlite") as Driver | undefined;
  return builtIn ?? ((await import("@photostructure/sqlite")) as unknown as Driver);
}

/** Opens (and creates) the file at `path`; throws what SQLite says. */
export async function openSqlite(path: string): Promise<SqlDatabase> {
  const driver = await loadDriver();
  return new driver.DatabaseSync(path);
}

export type SqliteTrouble = "busy" | "full" | "corrupt" | "read_only" | "cannot_open" | "io" | "other";

// Primary result codes, the low byte of the extended ones: https://sqlite.org/rescode.html
const TROUBLES: Readonly<Record<number, SqliteTrouble>> = {
  5: "busy",
  6: "busy",
  8: "read_only",
  10: "io",
  11: "corrupt",
  13: "full",
  14: "cannot_open",
  26: "corrupt",
};

/** What kind of trouble SQLite reports, or null when the error is not SQLite's. */
export function sqliteTrouble(error: unknown): SqliteTrouble | null {
  if (typeof error !== "object" || error === null) return null;
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown };
  if (typeof errcode === "number") return TROUBLES[errcode & 0xff] ?? "other";
  return code === "ERR_SQLITE_ERROR" ? "other" : null;
}
