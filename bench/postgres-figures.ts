import pg from "pg";
import { type TestServer, startOwnPostgres } from "../test/support/postgres.ts";

/** `ERRAND_BENCH_POSTGRES_URL`, or a server of our own that syncs every commit. */
export async function benchServer(): Promise<TestServer> {
  const url = process.env["ERRAND_BENCH_POSTGRES_URL"];
  if (url === undefined || url === "") return startOwnPostgres({ fsync: "on" });
  return { url, pid: null, stop: async () => undefined };
}

/** Durable commits of one small row a second, by one prepared insert and as many clients of our own. */
export async function rawPostgresCommits(url: string, clients: number, forMs = 1_500): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: clients });
  pool.on("error", () => undefined);
  await pool.query("CREATE TABLE IF NOT EXISTS raw (id bigserial PRIMARY KEY, body text)");
  const body = "x".repeat(100);
  let commits = 0;
  const insert = async (until: number): Promise<void> => {
    const client = await pool.connect();
    while (performance.now() < until) {
      await client.query({ name: "raw", text: "INSERT INTO raw (body) VALUES ($1)", values: [body] });
      commits += 1;
    }
    client.release();
  };
  const everybody = (until: number): Promise<unknown> =>
    Promise.all(Array.from({ length: clients }, () => insert(until)));
  await everybody(performance.now() + 300);
  commits = 0;
  const start = performance.now();
  await everybody(start + forMs);
  const perSecond = (commits * 1_000) / (performance.now() - start);
  await pool.end();
  return perSecond;
}

/** What the server itself has counted so far. */
export interface ServerTotals {
  readonly rows: number;
  readonly walBytes: number;
}

export async function serverTotals(url: string): Promise<ServerTotals> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(`
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::float8 AS rows,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS "walBytes"
    FROM pg_stat_user_tables WHERE schemaname = 'errand'`);
  await client.end();
  return rows[0] as ServerTotals;
}

/** Row counts reach the server's statistics a little after the rows. */
export function countsSettled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_500));
}

/** Milliseconds from the creation of root Runs to their claim, by the server's clock; the last `limit` of them. */
export async function claimTimes(url: string, limit: number): Promise<readonly number[]> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ readonly ms: number }>(
    `SELECT (e.at - h.created_at)::integer AS ms
     FROM errand.events e JOIN errand.run_headers h ON h.tenant = e.tenant AND h.run_id = e.run_id
     WHERE e.kind = 'claimed' AND e.epoch = 1 AND h.parent_no = 0
     ORDER BY e.seq DESC LIMIT $1`,
    [limit],
  );
  await client.end();
  return rows.map(({ ms }) => ms);
}
