import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll } from "vitest";
import { type TestServer, startPostgres } from "./postgres.ts";

/*
 * Schemas of the run's PostgreSQL server for the tests of one file. To a store a schema is its database, and an emptied
 * one a new one; connections that have compiled the store's functions for it are worth keeping.
 */

let server: TestServer | undefined;
let pool: pg.Pool | undefined;
const free: string[] = [];

afterAll(async () => {
  await pool?.query(free.map((schema) => `DROP SCHEMA ${schema} CASCADE`).join("; "));
  await pool?.end();
  await server?.stop();
});

export interface TakenSchema {
  readonly schema: string;
  readonly pool: pg.Pool;
  /** For connections beside the pool. */
  readonly url: string;
  /** Nobody may use the schema any more. */
  giveBack(): Promise<void>;
}

export async function takeSchema(): Promise<TakenSchema> {
  server ??= await startPostgres();
  // Every store on the pool listens to its errors.
  pool ??= new pg.Pool({ connectionString: server.url, max: 8 }).setMaxListeners(0);
  const [shared, { url }] = [pool, server];
  const schema = free.pop() ?? `world_${randomBytes(6).toString("hex")}`;
  return {
    schema,
    pool: shared,
    url,
    async giveBack() {
      const tables = await shared.query<{ readonly name: string }>(
        `SELECT tablename AS name FROM pg_tables
         WHERE schemaname = $1 AND tablename NOT IN ('meta', 'migrations')`,
        [schema],
      );
      await shared.query(tables.rows.map(({ name }) => `DELETE FROM ${schema}.${name}`).join("; "));
      free.push(schema);
    },
  };
}
