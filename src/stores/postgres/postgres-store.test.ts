import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, test } from "vitest";
import { newDatabase, startPostgres, type TestServer } from "../../../test/support/postgres.ts";
import { HandClock } from "../../testing/hand-clock.ts";
import type { StoreHarness } from "../../testing/store-contract/contract-case.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createPostgresStore } from "./index.ts";

let server: TestServer;
let database = "";

beforeAll(async () => {
  server = await startPostgres();
  database = await newDatabase(server);
});

afterAll(async () => {
  await server.stop();
});

/** Each store of a case has a schema of its own, which is its database as far as the store can tell. */
function harness(): StoreHarness {
  const clock = new HandClock();
  let schema = "";
  const openLast = () =>
    createPostgresStore({ connectionString: database, schema, clock, maxConnections: 4 });
  return {
    clock,
    open() {
      schema = `case_${randomBytes(6).toString("hex")}`;
      return openLast();
    },
    openSecond: openLast,
    async reopen(store) {
      await store.close();
      return openLast();
    },
  };
}

describe("PostgreSQL store", () => {
  registerStoreContract(test, harness, ["reopen", "openSecond"]);
});
