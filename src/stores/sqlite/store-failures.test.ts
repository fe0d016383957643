import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrandError } from "../../domain/errand-error.ts";
import type { Commit, Store } from "../../runtime/ports/store.ts";
import { openSqlite, type SqlDatabase } from "../../sql/sqlite-driver.ts";
import { HandClock } from "../../testing/hand-clock.ts";
import { World } from "../../testing/store-contract/world.ts";
import { createSqliteStore } from "./index.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import { storeError } from "./store-error.ts";

let folder = "";
let path = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "errand-failures-"));
  path = join(folder, "errand.db");
});

afterEach(() => rmSync(folder, { recursive: true }));

async function errorOf(promise: Promise<unknown>): Promise<ErrandError> {
  const reason: unknown = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (!ErrandError.is(reason)) throw new Error(`Not an ErrandError: ${String(reason)}`);
  return reason;
}

/** A store whose connection the test can reach. */
async function seenThrough(): Promise<{
  readonly store: Store;
  readonly db: SqlDatabase;
  readonly world: World;
}> {
  let db: SqlDatabase | null = null;
  const store = await openSqliteStore(path, {
    wrap(opened) {
      db = opened;
      return opened;
    },
  });
  if (db === null) throw new Error("The connection was not wrapped.");
  return { store, db, world: new World(store, new HandClock()) };
}

describe("a file that cannot be used", () => {
  test.each([
    ["a folder that is not there", () => join(folder, "missing", "errand.db"), "STORE_UNAVAILABLE"],
    ["a folder in place of the file", () => folder, "STORE_UNAVAILABLE"],
    ["no path", () => "", "INVALID_INPUT"],
    ["memory", () => ":memory:", "INVALID_INPUT"],
  ])("%s is refused with what to do", async (_name, bad, code) => {
    const error = await errorOf(createSqliteStore(bad()));
    expect(error.code).toBe(code);
    expect(error.fix.length).toBeGreaterThan(20);
  });

  test("bytes that are no database are STORE_CORRUPT, and stay as they are", async () => {
    const bytes = "no database at all ".repeat(1000);
    writeFileSync(path, bytes);
    expect((await errorOf(createSqliteStore(path))).code).toBe("STORE_CORRUPT");
    expect(readFileSync(path, "utf8")).toBe(bytes);
  });

  test("a page that was overwritten is STORE_CORRUPT when it is read", async () => {
    const { store, world } = await seenThrough();
    for (let at = 0; at < 200; at++) await world.create(world.newRun(`run${at}`, { body: "x".repeat(500) }));
    await store.close();
    const damaged = join(folder, "damaged.db");
    copyFileSync(path, damaged);
    const bytes = readFileSync(damaged);
    bytes.fill(0xa5, 4096 * 3);
    writeFileSync(damaged, bytes);
    const error = await errorOf(
      (async () => {
        const opened = await createSqliteStore(damaged);
        try {
          await opened.readLog(world.tenant, { all: true }, 0, 1000);
        } finally {
          await opened.close();
        }
      })(),
    );
    expect(error.code).toBe("STORE_CORRUPT");
    expect(error.message).toContain(damaged);
  });

  test("a newer schema is refused and left alone", async () => {
    await (await createSqliteStore(path)).close();
    const db = await openSqlite(path);
    db.exec("PRAGMA user_version = 4711");
    db.close();
    const error = await errorOf(createSqliteStore(path));
    expect(error.code).toBe("STORE_NEWER_SCHEMA");
    expect(error.details).toMatchObject({ found: 4711, known: 2 });
  });

  test("a schema that another edition of a migration made is refused before anything is written", async () => {
    await (await createSqliteStore(path)).close();
    const db = await openSqlite(path);
    db.exec("UPDATE meta SET value = 'otherwise' WHERE key = 'migration_1'");
    db.close();
    const error = await errorOf(createSqliteStore(path));
    expect(error.code).toBe("STORE_CORRUPT");
    expect(error.details).toMatchObject({ migration: "000001_initial.sql" });
  });

  test("another program's database is refused and left alone", async () => {
    const other = await openSqlite(path);
    other.exec("CREATE TABLE theirs (id INTEGER)");
    other.close();
    const before = readFileSync(path);
    const error = await errorOf(createSqliteStore(path));
    expect(error.code).toBe("STORE_UNAVAILABLE");
    expect(error.message).toContain("another program");
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.each([
    [8, "STORE_UNAVAILABLE"],
    [10, "STORE_UNAVAILABLE"],
    [14, "STORE_UNAVAILABLE"],
    [13, "STORE_FULL"],
    [11, "STORE_CORRUPT"],
    [261, "STORE_BUSY"],
    [1, "STORE_CORRUPT"],
  ] as const)("SQLite's result %i is %s", (errcode, code) => {
    const cause = Object.assign(new Error("as SQLite says"), { code: "ERR_SQLITE_ERROR", errcode });
    const error = storeError(path, cause);
    expect(error.code).toBe(code);
    expect(error.cause).toBe(cause);
  });

  test("a lock whose holder cannot be seen is laid to the workers registered on this host", () => {
    const cause = Object.assign(new Error("database is locked"), { code: "ERR_SQLITE_ERROR", errcode: 5 });
    expect(storeError(path, cause, () => [42]).message).toContain("locked by process 42");
    expect(storeError(path, cause).message).toContain("cannot be seen from here");
  });
});

describe("a disk that is full", () => {
  test("is STORE_FULL, loses nothing, and the store goes on once there is room", async () => {
    const { store, db, world } = await seenThrough();
    await world.create(world.newRun("before"));
    const { page_count: pages } = db.prepare("PRAGMA page_count").get() as { readonly page_count: number };
    db.exec(`PRAGMA max_page_count = ${pages}`);
    const body = "x".repeat(100_000);
    const errors = await Promise.all(
      ["a", "b", "c"].map((name) => errorOf(world.create(world.newRun(name, { body })))),
    );
    expect(errors.map((error) => error.code)).toEqual(["STORE_FULL", "STORE_FULL", "STORE_FULL"]);
    expect(await store.getRun(world.tenant, world.newRun("a").runId)).toBeNull();
    expect((await world.row("before")).state).toBe("ready");
    db.exec("PRAGMA max_page_count = 1000000");
    await world.create(world.newRun("a", { body }));
    expect((await world.row("a")).state).toBe("ready");
    await store.close();
  });
});

describe("one bad commit in a group", () => {
  test("fails alone, with its own error, and the others are written once", async () => {
    const { store, world } = await seenThrough();
    const poison = { ...world.draft({ create: [world.newRun("bad")] }) };
    const broken = {
      ...poison,
      create: [{ ...world.newRun("bad"), agent: { not: "text" } }],
    } as unknown as Commit;
    const outcomes = await Promise.allSettled([
      world.create(world.newRun("a")),
      store.commit(broken),
      world.create(world.newRun("b")),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const error = await errorOf(Promise.reject((outcomes[1] as PromiseRejectedResult).reason as Error));
    expect(error.code).toBe("INVALID_INPUT");
    expect((await world.log()).length).toBe(2);
    expect(await store.countRuns(world.tenant)).toMatchObject({ ready: 2 });
    expect((await store.commit(poison)).kind).toBe("committed");
    await store.close();
  });
});
