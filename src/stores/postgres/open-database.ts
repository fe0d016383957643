import { ErrandError } from "../../domain/errand-error.ts";
import { loadPostgres, type PostgresDriver, type PostgresPool } from "../../sql/postgres-driver.ts";
import { Database } from "./database.ts";
import { migrateSchema } from "./migrate.ts";
import { readStatements } from "./statements.ts";
import { storeError } from "./store-error.ts";

export interface DatabaseOptions {
  readonly connectionString?: string;
  readonly pool?: PostgresPool;
  readonly schema: string;
  readonly maxConnections: number;
  readonly preparedStatements: boolean;
  readonly callTimeoutMs: number;
  readonly migrate: boolean;
}

/** Connects, and brings the schema to this release. */
export async function openDatabase(
  options: DatabaseOptions,
): Promise<{ readonly database: Database; readonly driver: PostgresDriver }> {
  const { connectionString, schema } = options;
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,39}$/.test(schema)) {
    throw new ErrandError(
      "INVALID_INPUT",
      `${JSON.stringify(schema)} cannot be the name of errand's schema.`,
      "Use at most 40 letters, digits and underscores, a letter first.",
    );
  }
  const driver = await load();
  let pool = options.pool;
  if (pool === undefined) {
    if (connectionString === undefined) {
      throw new ErrandError(
        "INVALID_INPUT",
        "createPostgresStore() got neither a connectionString nor a pool.",
        "Give the address of a database, or a pool of the package pg.",
      );
    }
    try {
      pool = driver.openPool(connectionString, options.maxConnections, options.callTimeoutMs);
    } catch (cause) {
      throw new ErrandError(
        "INVALID_INPUT",
        "The connection string of the PostgreSQL store cannot be read.",
        "Write it as postgres://user:password@host:5432/database.",
        { cause },
      );
    }
  }
  const database = new Database({
    schema,
    pool,
    ownsPool: options.pool === undefined,
    statements: readStatements(schema),
    types: driver.types,
    prepares: options.preparedStatements,
    callTimeoutMs: options.callTimeoutMs,
  });
  try {
    if (options.migrate) await migrateSchema(pool, schema);
  } catch (error) {
    await database.end();
    throw storeError(error);
  }
  return { database, driver };
}

async function load(): Promise<PostgresDriver> {
  try {
    return await loadPostgres();
  } catch (cause) {
    throw new ErrandError(
      "STORE_UNAVAILABLE",
      "The PostgreSQL store needs the package pg, which is not installed.",
      "Run `npm install pg`, then open the store again.",
      { cause },
    );
  }
}
