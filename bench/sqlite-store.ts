// What the SQLite store costs for one trivial delegation: the parent's commit that delegates and parks, the child's end
// with its delivery, and the parent's commit that consumes the result and goes on. Beside it the rate of raw one-row
// commits to a file on the same disk. Run: npm run build && npx jiti bench/sqlite-store.ts
// Options: --delegations N, --finished N (delegations in the file beforehand), --normal (synchronous=NORMAL), --json.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createSqliteStore } from "errand/sqlite";
import { openSqlite } from "../src/sql/sqlite-driver.ts";
import { Delegations } from "./delegation-load.ts";

const { values } = parseArgs({
  options: {
    delegations: { type: "string", default: "6000" },
    finished: { type: "string", default: "0" },
    normal: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const total = Number(values.delegations);
const durability = values.normal ? "normal" : "full";

async function rawCommitsPerSecond(path: string): Promise<number> {
  const db = await openSqlite(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability};
    CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT) STRICT`);
  const insert = db.prepare("INSERT INTO raw (body) VALUES (?)");
  const count = 3000;
  const start = performance.now();
  for (let at = 0; at < count; at++) insert.run("x".repeat(100));
  const seconds = (performance.now() - start) / 1000;
  db.close();
  return count / seconds;
}

const folder = mkdtempSync(join(tmpdir(), "errand-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const store = await createSqliteStore(join(folder, "store.db"), { durability });
const load = await Delegations.on(store);
await load.run(Number(values.finished), 64);

for (const parents of [1, 16, 64]) {
  await load.run(Math.min(500, total), parents);
  const raw = await rawCommitsPerSecond(join(folder, `raw-${parents}.db`));
  const cpu = process.cpuUsage();
  const start = performance.now();
  await load.run(total, parents);
  const elapsed = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const figures = {
    store: "sqlite",
    durability,
    parents,
    finished: Number(values.finished),
    delegationsPerSecond: Math.round((total / elapsed) * 1000),
    microsPerDelegation: Math.round((elapsed * 1000) / total),
    cpuMicrosPerDelegation: Math.round((user + system) / total),
    rawCommitsPerSecond: Math.round(raw),
    ratio: Number(((total / elapsed) * 1000) / raw).toFixed(2),
  };
  console.log(
    values.json
      ? JSON.stringify(figures)
      : `${String(parents).padStart(3)} parents: ${figures.delegationsPerSecond}/s, ${figures.microsPerDelegation} µs a delegation ` +
          `(${figures.cpuMicrosPerDelegation} µs of CPU), raw commits ${figures.rawCommitsPerSecond}/s, ratio ${figures.ratio}`,
  );
}
await store.close();
