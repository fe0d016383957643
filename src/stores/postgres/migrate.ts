import { ErrandError } from "../../domain/errand-error.ts";
import { type Migration, readMigrations } from "../../sql/migrator.ts";
import type { PostgresPool, PostgresPoolClient } from "../../sql/postgres-driver.ts";
import { inSchema, quoted } from "./statements.ts";

/** The first line of a migration that releases before it cannot work beside. */
const BREAKING = /^-- breaking\b/;

/** Any number, the same in every release: held while one process migrates and the others wait. */
const MIGRATION_LOCK = 4_732_101;

const FOLDER = new URL("./migrations/", import.meta.url);

/** What a database's schema is, read without changing anything in it. */
export interface SchemaStatus {
  /** Number of the last migration applied; 0 for a schema that is not there. */
  readonly applied: number;
  /** Number of the last migration that this release knows. */
  readonly known: number;
  /** Names of the migrations to come. */
  readonly pending: readonly string[];
  /** Number of the last applied migration that older releases cannot work beside; 0 without one. */
  readonly breaking: number;
}

export function postgresMigrations(): readonly Migration[] {
  return readMigrations(FOLDER);
}

/**
 * Brings the schema to the last migration, each in its own transaction under a lock that ends with it, so of several
 * processes that start at once one applies a migration and the others find it applied.
 */
export async function migrateSchema(
  pool: PostgresPool,
  schema: string,
  migrations: readonly Migration[] = postgresMigrations(),
): Promise<void> {
  const client = await pool.connect();
  let broken = true;
  try {
    for (;;) {
      const status = await schemaStatus(client, schema, migrations);
      refuseNewer(schema, status);
      if (status.pending.length === 0) break;
      await applyNext(client, schema, migrations);
    }
    broken = false;
  } finally {
    client.release(broken);
  }
}

async function applyNext(
  client: PostgresPoolClient,
  schema: string,
  migrations: readonly Migration[],
): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    const { applied, breaking, known } = await schemaStatus(client, schema, migrations);
    refuseNewer(schema, { applied, breaking, known });
    const next = migrations[applied];
    if (next !== undefined) {
      if (applied === 0) await client.query(inSchema(CREATE_SCHEMA(schema), schema));
      await client.query(inSchema(next.sql, schema));
      await client.query({
        text: inSchema("INSERT INTO errand.migrations (number, name, breaking) VALUES ($1, $2, $3)", schema),
        values: [next.number, next.name, BREAKING.test(next.sql)],
      });
    }
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

const CREATE_SCHEMA = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS ${quoted(schema)};
  CREATE TABLE errand.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  );
`;

async function schemaStatus(
  client: PostgresPoolClient,
  schema: string,
  migrations: readonly Migration[],
): Promise<SchemaStatus> {
  const known = migrations.length;
  const names = migrations.map((one) => one.name);
  const found = await client.query({
    // Not to_regclass(): it may answer from before the lock was had.
    text: "SELECT count(*)::integer AS there FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'migrations'",
    values: [schema],
  });
  if ((found.rows[0] as { readonly there: number }).there === 0) {
    return { applied: 0, known, pending: names, breaking: 0 };
  }
  const result = await client.query(
    inSchema(
      `SELECT coalesce(max(number), 0) AS applied, coalesce(max(number) FILTER (WHERE breaking), 0) AS breaking
       FROM errand.migrations`,
      schema,
    ),
  );
  const { applied, breaking } = result.rows[0] as { readonly applied: number; readonly breaking: number };
  return { applied, known, pending: names.slice(applied), breaking };
}

function refuseNewer(schema: string, status: Pick<SchemaStatus, "applied" | "breaking" | "known">): void {
  const { applied, breaking, known } = status;
  if (breaking <= known) return;
  throw new ErrandError(
    "STORE_NEWER_SCHEMA",
    `Schema ${JSON.stringify(schema)} is at migration ${applied}, and ${breaking} breaks with this release, which knows ${known} and older.`,
    "Upgrade errand here to the release that migrated the database; nothing in it was changed.",
    { details: { schema, found: applied, breaking, known } },
  );
}
