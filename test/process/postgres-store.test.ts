import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrandError } from "../../src/domain/errand-error.ts";
import type { PostgresPool, PostgresQuery } from "../../src/sql/postgres-driver.ts";
import { createPostgresStore } from "../../src/stores/postgres/index.ts";
import { migrateSchema, postgresMigrations } from "../../src/stores/postgres/migrate.ts";
import { storeError } from "../../src/stores/postgres/store-error.ts";
import { HandClock } from "../../src/testing/hand-clock.ts";
import { CARRIES, id, World } from "../../src/testing/store-contract/world.ts";
import { newDatabase, onServer, startPostgres, type TestServer } from "../support/postgres.ts";

const CHILD = fileURLToPath(new URL("./postgres-child.ts", import.meta.url));

let server: TestServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server.stop();
});

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const reason: unknown = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (!ErrandError.is(reason)) throw new Error(`Not an ErrandError: ${String(reason)}`);
  expect(reason.fix.length).toBeGreaterThan(20);
  return reason.code;
}

interface Child {
  readonly process: ChildProcess;
  readonly lines: Interface;
}

function startChild(url: string, schema: string): Child {
  const child = spawn(process.execPath, ["--import", "jiti/register", CHILD, url, schema], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  return { process: child, lines: createInterface(child.stdout) };
}

async function say(child: Child, line: string): Promise<string> {
  const answer = once(child.lines, "line") as Promise<[string]>;
  const ended = once(child.process, "close").then(() => ["ended"]);
  child.process.stdin?.write(`${line}\n`);
  return (await Promise.race([answer, ended]))[0] ?? "";
}

describe("migrations", () => {
  test("K21.2 eight processes migrate at once, twice, and one set is applied", async () => {
    const url = await newDatabase(server);
    const children = Array.from({ length: 8 }, () => startChild(url, "errand"));
    await Promise.all(children.map((child) => once(child.lines, "line")));
    for (let round = 0; round < 2; round++) {
      expect(await Promise.all(children.map((child) => say(child, "open")))).toEqual(Array(8).fill("opened"));
    }
    const ends = children.map((child) => once(child.process, "close"));
    for (const child of children) child.process.stdin?.end();
    expect((await Promise.all(ends)).map(([code]) => code as number)).toEqual(Array(8).fill(0));
    const applied = await onServer(url, "SELECT number FROM errand.migrations ORDER BY number");
    expect(applied).toEqual(postgresMigrations().map(({ number }) => ({ number })));
    expect(await onServer(url, "SELECT count(*)::integer AS ids FROM errand.meta")).toEqual([{ ids: 1 }]);
  });

  test("K21.2 an older release runs beside a newer schema that does not break it, and refuses one that does", async () => {
    const url = await newDatabase(server);
    const clock = new HandClock();
    const before = await createPostgresStore({ connectionString: url, clock });
    const world = new World(before, clock);
    await world.create(world.newRun("a"));
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    pool.on("error", () => undefined);
    const known = postgresMigrations();
    const next = { number: known.length + 1, name: "next", sql: "CREATE TABLE errand.newer (id integer);" };
    await migrateSchema(pool as unknown as PostgresPool, "errand", [...known, next]);
    // The one that was open goes on, and another of the older release opens.
    await world.create(world.newRun("b"));
    const beside = await createPostgresStore({ connectionString: url, clock });
    expect((await beside.countRuns(world.tenant)).ready).toBe(2);
    await beside.close();
    const breaking = { number: next.number + 1, name: "after", sql: "-- breaking\nDROP TABLE errand.newer;" };
    await migrateSchema(pool as unknown as PostgresPool, "errand", [...known, next, breaking]);
    expect(await codeOf(createPostgresStore({ connectionString: url, clock }))).toBe("STORE_NEWER_SCHEMA");
    await before.close();
    await pool.end();
  });

  test("K21.2 a migration that fails leaves the schema at the last one that did not", async () => {
    const url = await newDatabase(server);
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    pool.on("error", () => undefined);
    const known = postgresMigrations();
    const bad = {
      number: known.length + 1,
      name: "bad",
      sql: "CREATE TABLE errand.half (id integer); SELECT 1 / 0;",
    };
    await expect(migrateSchema(pool as unknown as PostgresPool, "errand", [...known, bad])).rejects.toThrow(
      "division by zero",
    );
    expect(await onServer(url, "SELECT max(number) AS last FROM errand.migrations")).toEqual([
      { last: known.length },
    ]);
    expect(await onServer(url, "SELECT to_regclass('errand.half') AS half")).toEqual([{ half: null }]);
    await pool.end();
  });
});

describe("a database that cannot be used", () => {
  test("is refused with what to do", async () => {
    const missing = new URL(server.url);
    missing.pathname = "/not_there";
    const closed = new URL(server.url);
    closed.port = "1";
    expect(await codeOf(createPostgresStore({ connectionString: missing.href }))).toBe("STORE_UNAVAILABLE");
    expect(await codeOf(createPostgresStore({ connectionString: closed.href }))).toBe("STORE_UNAVAILABLE");
    expect(await codeOf(createPostgresStore({}))).toBe("INVALID_INPUT");
    expect(await codeOf(createPostgresStore({ connectionString: server.url, schema: "a; b" }))).toBe(
      "INVALID_INPUT",
    );
  });

  test.each([
    ["40P01", "STORE_BUSY"],
    ["55P03", "STORE_BUSY"],
    ["53300", "STORE_BUSY"],
    ["57P01", "STORE_UNAVAILABLE"],
    ["08006", "STORE_UNAVAILABLE"],
    ["25006", "STORE_UNAVAILABLE"],
    ["28P01", "STORE_UNAVAILABLE"],
    ["42P01", "STORE_UNAVAILABLE"],
    ["53100", "STORE_FULL"],
    ["XX001", "STORE_CORRUPT"],
    ["22021", "INVALID_INPUT"],
    ["99999", "STORE_UNAVAILABLE"],
  ] as const)("PostgreSQL's %s is %s", (code, expected) => {
    const cause = Object.assign(new Error("as PostgreSQL says"), { code, severity: "ERROR" });
    const error = storeError(cause);
    expect(error.code).toBe(expected);
    expect(error.cause).toBe(cause);
    expect(error.message).toContain("as PostgreSQL says");
  });
});

describe("a transaction-mode pooler in between", () => {
  test("every statement may meet another session, and leaves nothing behind", async () => {
    const url = await newDatabase(server);
    let sessions = 0;
    const fresh = async <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => {
      sessions += 1;
      const client = new pg.Client(url);
      await client.connect();
      try {
        const result = await use(client);
        const kept = await client.query(`
          SELECT (SELECT count(*) FROM pg_prepared_statements)::integer AS prepared,
            (SELECT count(*) FROM pg_listening_channels())::integer AS listening,
            (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')::integer AS locks,
            (SELECT count(*) FROM pg_settings WHERE source = 'session')::integer AS settings`);
        expect(kept.rows).toEqual([{ prepared: 0, listening: 0, locks: 0, settings: 0 }]);
        return result;
      } finally {
        await client.end();
      }
    };
    const real = new pg.Pool({ connectionString: url, max: 1 });
    real.on("error", () => undefined);
    const pool: PostgresPool = {
      query: (query: PostgresQuery) => fresh((client) => client.query(query as pg.QueryConfig)),
      // Migrations are transactions on one connection, which such a pooler keeps together.
      connect: () => real.connect() as unknown as ReturnType<PostgresPool["connect"]>,
      end: async () => undefined,
      on: () => undefined,
      off: () => undefined,
    };
    const clock = new HandClock();
    const store = await createPostgresStore({ pool, clock, listen: false, preparedStatements: false });
    const world = new World(store, clock);
    const parent = await world.running("p");
    const receipt = await world.step(
      parent,
      { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
      {
        create: [world.newChild("c", "p", { claim: true })],
        openDelegations: [world.opening("c", "p")],
        claim: { incarnation: parent.incarnation, carries: CARRIES, parent: false },
      },
    );
    const child = world.held(receipt.claimed[0], parent.incarnation);
    await world.step(child, { kind: "end", endKind: "completed" }, { deliver: [world.delivery("c", "p")] });
    expect((await world.claim(parent.incarnation)).map((run) => run.runId)).toEqual([id.run("p")]);
    expect((await store.readFeed(world.tenant, "lifecycle", null, 10)).entries.length).toBe(2);
    await store.close();
    await real.end();
    expect(sessions).toBeGreaterThan(8);
  });
});
