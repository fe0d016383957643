// What the PostgreSQL store costs for one trivial delegation: the parent's commit that delegates and parks, the child's
// end with its delivery, and the parent's commit that consumes the result and goes on. Beside it, in the same run, the
// rate of raw one-row commits by one prepared insert and as many clients of our own. Starts a server of its own, which
// syncs every commit; ERRAND_BENCH_POSTGRES_URL names another. Run: npx jiti bench/postgres-store.ts
// Options: --delegations N, --finished N (delegations in the database beforehand), --parents 1,16,64, --json.
import { parseArgs } from "node:util";
import { createPostgresStore, type PostgresPool } from "../src/stores/postgres/index.ts";
import pg from "pg";
import { newDatabase } from "../test/support/postgres.ts";
import { Delegations } from "./delegation-load.ts";
import { benchServer, countsSettled, rawPostgresCommits, serverTotals } from "./postgres-figures.ts";

const { values } = parseArgs({
  options: {
    delegations: { type: "string", default: "3000" },
    finished: { type: "string", default: "0" },
    parents: { type: "string", default: "1,16,64" },
    json: { type: "boolean", default: false },
  },
});
const total = Number(values.delegations);

/** A pool that counts what it sends. */
function countingPool(url: string): { readonly pool: PostgresPool; readonly count: () => number } {
  const real = new pg.Pool({ connectionString: url, max: 10 });
  let sent = 0;
  const pool = real as unknown as PostgresPool;
  const query = pool.query.bind(pool);
  pool.query = (one) => {
    sent += 1;
    return query(one);
  };
  return { pool, count: () => sent };
}

const server = await benchServer();
const url = await newDatabase(server);
const { pool, count } = countingPool(url);
const store = await createPostgresStore({ pool, listen: url });
const load = await Delegations.on(store);
await load.run(Number(values.finished), 64);

for (const parents of values.parents.split(",").map(Number)) {
  await load.run(Math.min(500, total), parents);
  const rawBefore = await rawPostgresCommits(url, parents);
  const before = { ...(await serverTotals(url)), sent: count() };
  const cpu = process.cpuUsage();
  const start = performance.now();
  await load.run(total, parents);
  const elapsed = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const sent = count() - before.sent;
  await countsSettled();
  const after = await serverTotals(url);
  const raw = (rawBefore + (await rawPostgresCommits(url, parents))) / 2;
  const figures = {
    store: "postgres",
    parents,
    finished: Number(values.finished),
    delegationsPerSecond: Math.round((total / elapsed) * 1000),
    roundTripsPerDelegation: Number((sent / total).toFixed(2)),
    rowsPerDelegation: Number(((after.rows - before.rows) / total).toFixed(1)),
    walBytesPerDelegation: Math.round((after.walBytes - before.walBytes) / total),
    cpuMicrosPerDelegation: Math.round((user + system) / total),
    rawCommitsPerSecond: Math.round(raw),
    ratio: Number((((total / elapsed) * 1000) / raw).toFixed(3)),
  };
  console.log(
    values.json
      ? JSON.stringify(figures)
      : `${String(parents).padStart(3)} parents: ${figures.delegationsPerSecond}/s, ${figures.roundTripsPerDelegation} round trips, ` +
          `${figures.rowsPerDelegation} rows and ${figures.walBytesPerDelegation} bytes of WAL a delegation, ` +
          `${figures.cpuMicrosPerDelegation} µs of CPU here; raw ${figures.rawCommitsPerSecond}/s, ratio ${figures.ratio}`,
  );
}
await store.close();
await pool.end();
await server.stop();
