import pg from "pg";
import { afterAll, beforeAll, describe, test } from "vitest";
import { newDatabase, startPostgres, type TestServer } from "../../../test/support/postgres.ts";
import { HandClock } from "../../testing/hand-clock.ts";
import type { StoreHarness } from "../../testing/store-contract/contract-case.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createPostgresStore } from "./index.ts";

let server: TestServer;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startPostgres();
  pool = new pg.Pool({ connectionString: await newDatabase(server), max: 6 });
  pool.on("error", () => undefined);
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

/** Schemas that a case has done with. To a store a schema is its database; emptied, it is a new one. */
const free: string[] = [];
let made = 0;

async function takeSchema(): Promise<string> {
  const schema = free.pop();
  if (schema === undefined) return `case_${++made}`;
  const { rows } = await pool.query<{ readonly tables: string }>(
    `SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') AS tables FROM pg_tables
     WHERE schemaname = $1 AND tablename NOT IN ('meta', 'migrations')`,
    [schema],
  );
  await pool.query(`
    TRUNCATE ${rows[0]?.tables};
    ALTER SEQUENCE ${schema}.numbers RESTART;
    UPDATE ${schema}.meta SET value = md5(random()::text) WHERE key = 'store_id';`);
  return schema;
}

function harness(): StoreHarness {
  const clock = new HandClock();
  const taken: string[] = [];
  const openLast = () => createPostgresStore({ pool, schema: taken.at(-1) ?? "", clock });
  return {
    clock,
    async open() {
      taken.push(await takeSchema());
      return openLast();
    },
    openSecond: openLast,
    async reopen(store) {
      await store.close();
      return openLast();
    },
    async dispose() {
      free.push(...taken);
    },
  };
}

describe("PostgreSQL store", () => {
  registerStoreContract(test, harness, ["reopen", "openSecond"]);
});
