import { appendFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readReleaseInput } from "./release-input.ts";
import { SHIPPED, copyOfShipped, inputErrorOf, temporaryFolder } from "./testing.ts";

describe("a release that reads well", () => {
  it("gives every part", async () => {
    const input = await readReleaseInput(SHIPPED);
    expect(input.clients.map(({ name }) => name)).toEqual([
      "storefront",
      "warehouse",
      "billing",
      "uptime monitor",
    ]);
    expect(input.migrations.oldMigrations.map(({ number }) => number)).toEqual([1, 2]);
    expect(input.migrations.newMigrations.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    expect(Object.keys(input.screens.after)).toEqual(["order-detail.png", "order-list.png"]);
  });

  it("has a digest that depends on the content and not on the place", async () => {
    const copy = await copyOfShipped();
    const { digest } = await readReleaseInput(SHIPPED);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect((await readReleaseInput(copy)).digest).toBe(digest);
    await appendFile(join(copy.before, "seed.sql"), "-- more\n");
    expect((await readReleaseInput(copy)).digest).not.toBe(digest);
  });

  it("may lack a way back, which is for the rollback test to judge", async () => {
    const copy = await copyOfShipped();
    await rm(join(copy.after, "migrations/0004_put_orders_on_hold.down.sql"));
    const { migrations } = await readReleaseInput(copy);
    expect(migrations.newMigrations.at(-1)?.down).toBeNull();
  });
});

describe("a release that does not", () => {
  it("is told everything that is missing, with what to do", async () => {
    const copy = await copyOfShipped();
    await Promise.all([
      rm(join(copy.before, "clients.json")),
      rm(join(copy.before, "seed.sql")),
      rm(join(copy.after, "openapi.yaml")),
      rm(join(copy.after, "ui"), { recursive: true }),
    ]);
    const { problems } = await inputErrorOf(() => readReleaseInput(copy));
    expect(problems.map(({ file }) => basename(file))).toEqual([
      "openapi.yaml",
      "clients.json",
      "seed.sql",
      "ui",
    ]);
    for (const { problem, fix } of problems) {
      expect(problem).toBe("does not exist.");
      expect(fix).toMatch(/\.$/);
    }
  });

  it.each([
    ["openapi.yaml", "paths: [", /openapi\.yaml: is not valid YAML at line 1/],
    ["clients.json", "{", /clients\.json: is not valid JSON/],
    [
      "clients.json",
      `{"clients":[{"name":"shop","owner":"web","uses":[{"operation":"GET /nowhere"}]}]}`,
      /client "shop" use GET \/nowhere, which .*openapi\.yaml does not have/,
    ],
    ["migrations/add_index.up.sql", "", /add_index\.up\.sql: has no number/],
    ["migrations/0002_twin.up.sql", "", /has the same number as/],
    ["migrations/0009_back.down.sql", "", /0009_back\.up\.sql: does not exist/],
  ])("has a wrong %s", async (file, content, message) => {
    const copy = await copyOfShipped();
    await writeFile(join(copy.before, file), content);
    expect((await inputErrorOf(() => readReleaseInput(copy))).message).toMatch(message);
  });

  it("has a file where a folder should be", async () => {
    const copy = await copyOfShipped();
    await rename(join(copy.after, "ui"), join(copy.after, "shots"));
    await writeFile(join(copy.after, "ui"), "");
    expect((await inputErrorOf(() => readReleaseInput(copy))).message).toMatch(/ui: cannot be read: ENOTDIR/);
  });

  it("is not where the caller says", async () => {
    const missing = join(await temporaryFolder(), "nowhere");
    const { problems } = await inputErrorOf(() => readReleaseInput({ before: missing, after: "after" }));
    expect(problems).toMatchObject([
      { file: missing, problem: "does not exist.", fix: "Name the folder of the running version." },
      { file: "after", problem: "is not an absolute path (after)." },
    ]);
  });

  it("is not read once the caller has given up", async () => {
    await expect(readReleaseInput(SHIPPED, AbortSignal.abort())).rejects.toThrow(/abort/i);
  });
});
