import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite, type SqlDatabase } from "../../sql/sqlite-driver.ts";
import { createSqliteStore } from "./index.ts";
import { OPERATIONS } from "./operation-statements.ts";
import { READS } from "./reads.ts";
import { SQL } from "./statements.ts";

/** These read what they are asked for in whole; no step of a Run waits for them. */
const WHOLE_READS: ReadonlySet<string> = new Set([
  "logOfAll",
  "delegationsAll",
  "ticketsAll",
  "pids",
  "storeId",
]);

/** Lists of everything a tenant has of one kind, or of a partial index that holds little; or one page of such a list. */
const TENANT_LISTS: ReadonlySet<string> = new Set([
  "allNewest",
  "allOldest",
  "liveNewest",
  "liveOldest",
  "countAll",
  "countLive",
  "ticketsOpen",
  "pendingIntents",
  "orphaned",
  "workers",
  "publications",
  "countTombstones",
  "oldestBeat",
  "limits",
  "tombstones",
  "oldestEvents",
  "deleteDeadWorkers",
]);

let folder = "";
let db: SqlDatabase;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "errand-schema-"));
  const path = join(folder, "errand.db");
  await (await createSqliteStore(path)).close();
  db = await openSqlite(path);
});

afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

test("the reviewed schema is that of a migrated database", async () => {
  const rows = db
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name")
    .all() as { readonly sql: string }[];
  const dump = rows.map((row) => `${row.sql.replaceAll(/^\s*--.*\n/gm, "")};\n`).join("\n");
  await expect(dump).toMatchFileSnapshot("./schema.sql");
});

test("every table is STRICT, and every key but the numbers starts with tenant", () => {
  const tables = db.prepare("PRAGMA table_list").all() as {
    readonly name: string;
    readonly strict: number;
    readonly schema: string;
  }[];
  for (const { name, strict } of tables.filter((table) => !table.name.startsWith("sqlite_"))) {
    expect([name, strict]).toEqual([name, 1]);
    const unique = db.prepare(`SELECT name FROM pragma_index_list('${name}') WHERE "unique" = 1`).all() as {
      readonly name: string;
    }[];
    for (const index of unique) {
      const columns = db.prepare(`SELECT name FROM pragma_index_info('${index.name}')`).all() as {
        readonly name: string;
      }[];
      expect([index.name, columns[0]?.name]).toEqual([
        index.name,
        name === "meta" ? "key" : index.name === "log_lane_operation" ? "run_no" : "tenant",
      ]);
    }
  }
});

describe("no statement scans a table", () => {
  const all = { ...SQL, ...READS, ...OPERATIONS };
  test.each(Object.keys(all).filter((name) => !WHOLE_READS.has(name)))("%s", (name) => {
    const sql = all[name as keyof typeof all];
    if (sql.startsWith("PRAGMA")) return;
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[];
    const steps = plan.map((step) => step.detail).filter((detail) => /^(SCAN|SEARCH) /.test(detail));
    const scans = steps.filter((detail) => /^SCAN (?!json_each|CONSTANT)/.test(detail));
    expect(scans).toEqual([]);
    // A key that ends with the tenant would pass over all that the tenant has.
    const passes = TENANT_LISTS.has(name) ? [] : steps.filter((detail) => detail.includes("(tenant=?)"));
    expect(passes).toEqual([]);
  });
});
