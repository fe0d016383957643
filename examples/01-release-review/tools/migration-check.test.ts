import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type MigrationTestResult,
  describeDestructiveChange,
  forwardTest,
  rollbackTest,
} from "./migration-check.ts";
import type { Migration, MigrationInput } from "./migration.ts";
import { inputErrorOf, temporaryFolder } from "./testing.ts";

const OLD: Migration = {
  number: 1,
  name: "0001_users",
  up: "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, fax TEXT, nick TEXT); CREATE TABLE empty (a);",
  down: "DROP TABLE users; DROP TABLE empty;",
};

function release(up: string, down: string | null, rest: Partial<MigrationInput> = {}): MigrationInput {
  return {
    oldMigrations: [OLD],
    newMigrations: [OLD, { number: 2, name: "0002_change", up, down }],
    seedSql:
      "INSERT INTO users VALUES (1, 'Ann', '1-2', NULL), (2, 'Bo', NULL, NULL), (3, 'Cy', '3-4', NULL);",
    oldAppQueriesSql:
      "-- name: names\nSELECT id, name FROM users;\n-- name: join\nINSERT INTO users (name) VALUES ('Di');",
    newAppQueriesSql: "",
    ...rest,
  };
}

async function forward(input: MigrationInput): Promise<MigrationTestResult> {
  return await forwardTest(input, { outDir: await temporaryFolder() });
}

async function rollback(input: MigrationInput): Promise<MigrationTestResult> {
  return await rollbackTest(input, { outDir: await temporaryFolder() });
}

function failures({ checks }: MigrationTestResult): readonly string[] {
  return checks.filter(({ passed }) => !passed).map(({ name }) => name);
}

function detailOf({ checks }: MigrationTestResult, name: string): string | undefined {
  return checks.find((check) => check.name === name)?.detail;
}

const canForbidStatements = !/^2[1-3]\./.test(process.versions.node);

describe("forward", () => {
  it("passes a change that the old version does not notice", async () => {
    const result = await forward(
      release("ALTER TABLE users ADD COLUMN age INTEGER NOT NULL DEFAULT 0", null),
    );
    expect(result).toMatchObject({ passed: true, destructive: [] });
  });

  it("passes a release without migrations", async () => {
    const result = await forward({ ...release("", null), newMigrations: [OLD] });
    expect(result.passed).toBe(true);
    expect(detailOf(result, "migrations_apply")).toBe("the release adds no migration");
  });

  it("says which file failed and why, and what was not reached", async () => {
    const result = await forward(release("ALTER TABLE nobody ADD COLUMN a", null));
    expect(detailOf(result, "migrations_apply")).toBe("0002_change.up.sql: no such table: nobody");
    expect(failures(result)).toContain("old_writes_accepted");
    expect(detailOf(result, "rows_kept")).toMatch(/not reached/);
  });

  it("fails a NOT NULL column without a default, which SQLite cannot add to rows that exist", async () => {
    const result = await forward(release("ALTER TABLE users ADD COLUMN age INTEGER NOT NULL", null));
    expect(detailOf(result, "migrations_apply")).toMatch(/NOT NULL/);
  });

  it("finds by writing that a rebuilt table demands a column the old version does not send", async () => {
    const up = `
      CREATE TABLE next (id INTEGER PRIMARY KEY, name TEXT NOT NULL, fax TEXT, nick TEXT, age INTEGER NOT NULL);
      INSERT INTO next SELECT id, name, fax, nick, 0 FROM users;
      DROP TABLE users;
      ALTER TABLE next RENAME TO users;`;
    const result = await forward(release(up, null));
    expect(failures(result)).toEqual(["old_statements_run", "old_writes_accepted"]);
    const [change] = result.destructive;
    expect(change).toMatchObject({ kind: "old_writes_refused", table: "users" });
    expect(change && describeDestructiveChange(change)).toMatch(
      /users refuses .* NOT NULL constraint failed: users\.age/,
    );
  });

  it.each([
    ["DROP TABLE users", { kind: "table_dropped", table: "users", rows: 3 }],
    [
      "ALTER TABLE users DROP COLUMN fax",
      { kind: "column_dropped", table: "users", column: "fax", values: 2 },
    ],
    ["DELETE FROM users WHERE id > 1", { kind: "rows_removed", table: "users", rows: 2 }],
    [
      "UPDATE users SET name = upper(name)",
      { kind: "values_changed", table: "users", column: "name", values: 3 },
    ],
  ])("sees what %s destroys", async (up, expected) => {
    const { destructive } = await forward(release(up, null));
    expect(destructive).toContainEqual(expected);
  });

  it.each([
    ["an empty table dropped", "DROP TABLE empty"],
    ["an empty column dropped", "ALTER TABLE users DROP COLUMN nick"],
    ["a table renamed", "ALTER TABLE users RENAME TO people"],
    ["a column renamed", "ALTER TABLE users RENAME COLUMN fax TO facsimile"],
  ])("does not call it loss of data: %s", async (_, up) => {
    const { destructive } = await forward(release(up, null));
    expect(destructive.filter(({ kind }) => kind !== "old_writes_refused")).toEqual([]);
  });

  it("notices that an old statement gives something else", async () => {
    const nothing = await forward(release("DELETE FROM users WHERE id = 1", null));
    expect(detailOf(nothing, "old_statements_run")).toBe("names: gave 3 rows and gives 2");
    const other = await forward(release("UPDATE users SET name = 'X' WHERE id = 1", null));
    expect(detailOf(other, "old_statements_run")).toBe("names: gives other values");
    const gone = await forward(release("ALTER TABLE users RENAME COLUMN name TO title", null));
    expect(detailOf(gone, "old_statements_run")).toMatch(/names: no such column: name; join: .*name/);
  });

  it("notices dangling references, and only new ones", async () => {
    const up = "CREATE TABLE pets (owner INTEGER REFERENCES users (id)); INSERT INTO pets VALUES (9);";
    expect(failures(await forward(release(up, null)))).toEqual(["foreign_keys"]);
    const old = { ...OLD, up: OLD.up + up };
    const input = release("SELECT 1", null, { oldMigrations: [old], newMigrations: [old] });
    expect(failures(await forward(input))).toEqual([]);
  });

  it("notices that the new version's statements do not fit the new schema", async () => {
    const input = release("SELECT 1", null, { newAppQueriesSql: "-- name: ages\nSELECT age FROM users" });
    expect(detailOf(await forward(input), "new_statements_run")).toBe("ages: no such column: age");
  });

  it.each([
    ["edited", [{ ...OLD, up: `${OLD.up} ` }], "0001_users.up.sql was edited"],
    ["dropped", [], "0001_users is missing"],
    [
      "preceded",
      [OLD, { ...OLD, number: 0, name: "0000_first", up: "" }],
      "0000_first is new but numbered before the last old one",
    ],
  ])("notices an old migration %s", async (_, newMigrations, detail) => {
    const result = await forward(release("", null, { newMigrations }));
    expect(detailOf(result, "history_unchanged")).toBe(detail);
    expect(result.passed).toBe(false);
  });

  // The SQLite of Node 22 has no way to forbid it.
  it.runIf(canForbidStatements)("refuses to let a migration open another file", async () => {
    const folder = await temporaryFolder();
    await forwardTest(release(`ATTACH '${join(folder, "x.sqlite")}' AS x; CREATE TABLE x.a (b)`, null), {
      outDir: folder,
    });
    expect(await readdir(folder)).toEqual(["forward-test.json"]);
  });
});

describe("rollback", () => {
  const add = "ALTER TABLE users ADD COLUMN age INTEGER";
  const drop = "ALTER TABLE users DROP COLUMN age";

  it("passes when the way back restores everything", async () => {
    expect(await rollback(release(add, drop))).toMatchObject({ passed: true, destructive: [] });
  });

  it("fails without a way back", async () => {
    const result = await rollback(release(add, null));
    expect(detailOf(result, "ways_back_exist")).toBe("no .down.sql for 0002_change");
    expect(result.passed).toBe(false);
  });

  it("fails a way back that does not run, and leaves no step half done", async () => {
    const result = await rollback(release(add, `${drop}; DROP TABLE nobody`));
    expect(detailOf(result, "migrations_revert")).toBe("0002_change.down.sql: no such table: nobody");
  });

  it("explains why a file must not manage transactions", async () => {
    const result = await rollback(release(`BEGIN; ${add}; COMMIT`, drop));
    expect(detailOf(result, "migrations_apply")).toMatch(/leave BEGIN and COMMIT out/);
  });

  it("fails when the old schema does not come back", async () => {
    const result = await rollback(release(`${add}; CREATE INDEX by_name ON users (name)`, drop));
    expect(failures(result)).toContain("schema_restored");
    expect(detailOf(result, "schema_restored")).toBe("unexpected: create index by_name on users ( name )");
  });

  it("fails when the schema comes back without its data", async () => {
    const result = await rollback(
      release("ALTER TABLE users DROP COLUMN fax", "ALTER TABLE users ADD COLUMN fax TEXT"),
    );
    expect(failures(result)).toEqual(expect.arrayContaining(["schema_restored", "data_restored"]));
    expect(result.destructive).toEqual([
      { kind: "values_changed", table: "users", column: "fax", values: 2 },
    ]);
  });

  it("takes an invertible change of values as restored", async () => {
    const result = await rollback(release("UPDATE users SET id = id + 10", "UPDATE users SET id = id - 10"));
    expect(result).toMatchObject({ passed: true, destructive: [] });
  });

  it("fails a way back that only works while the new version has not written", async () => {
    const up = `${add}; INSERT INTO empty SELECT count(*) FROM users`;
    const down = `
      CREATE TEMP TABLE at_most_three (n CHECK (n <= 3));
      INSERT INTO at_most_three SELECT count(*) FROM users;
      DROP TABLE at_most_three;
      DELETE FROM empty;
      ${drop}`;
    expect((await rollback(release(up, down))).passed).toBe(true);
    const used = release(up, down, { newAppQueriesSql: "INSERT INTO users (name, age) VALUES ('Ed', 5)" });
    const result = await rollback(used);
    expect(failures(result)).toEqual(["revert_after_use"]);
    expect(detailOf(result, "revert_after_use")).toMatch(/0002_change\.down\.sql: CHECK constraint failed/);
  });
});

describe("both tests", () => {
  it("leave the same bytes and nothing else, however often they run", async () => {
    const outDir = await temporaryFolder();
    const input = release("ALTER TABLE users DROP COLUMN fax", "ALTER TABLE users ADD COLUMN fax TEXT");
    const run = async (): Promise<readonly string[]> => {
      await Promise.all([forwardTest(input, { outDir }), rollbackTest(input, { outDir })]);
      const names = (await readdir(outDir)).toSorted();
      return await Promise.all(
        names.map(async (name) => name + (await readFile(join(outDir, name), "utf8"))),
      );
    };
    const first = await run();
    expect(first.map((text) => text.split("{")[0])).toEqual(["forward-test.json", "rollback-test.json"]);
    expect(await run()).toEqual(first);
  });

  it.each([
    ["migrations", { oldMigrations: [{ ...OLD, up: "CREATE" }] }, "before/migrations/0001_users.up.sql"],
    ["seed", { seedSql: "INSERT INTO nobody VALUES (1)" }, "before/seed.sql"],
    ["statements", { oldAppQueriesSql: "SELECT nothing FROM users" }, "before/app-queries.sql"],
  ])("say that the old %s do not run, which is no verdict", async (_, rest, file) => {
    const input = release("SELECT 1", null, rest);
    const error = await inputErrorOf(() => forward(input));
    expect(error.problems).toMatchObject([{ file }]);
    await inputErrorOf(() => rollback(input));
  });

  it("stop when asked to, and clean up", async () => {
    const outDir = await temporaryFolder();
    const stop = new AbortController();
    const running = forwardTest(release("SELECT 1", null), { outDir, signal: stop.signal });
    stop.abort();
    await expect(running).rejects.toThrow(/abort/i);
    expect(await readdir(outDir)).toEqual([]);
  });
});
