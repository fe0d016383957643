import pg from "pg";
import { createPostgresStore, type PostgresPool } from "../src/stores/postgres/index.ts";
import { bytesOf, type MeasuredStore, rowsOf } from "./measured-store.ts";

/** A PostgreSQL store, and what has gone through it; each statement is a round trip. */
export async function openMeasuredPostgres(url: string, listen: string | false): Promise<MeasuredStore> {
  const count = { commits: 0, rows: 0, bytes: 0, statements: 0 };
  const real = new pg.Pool({ connectionString: url, max: 10 });
  const pool = real as unknown as PostgresPool;
  const query = pool.query.bind(pool);
  pool.query = (one) => {
    count.statements++;
    return query(one);
  };
  const store = await createPostgresStore({ pool, listen });
  const commit = store.commit.bind(store);
  const claim = store.claim.bind(store);
  const release = store.release.bind(store);
  const close = store.close.bind(store);
  store.commit = (one) => {
    count.commits++;
    count.rows += rowsOf(one);
    count.bytes += bytesOf(one);
    return commit(one);
  };
  store.claim = async (tenant, request) => {
    const claims = await claim(tenant, request);
    if (claims.length > 0) count.commits++;
    return claims;
  };
  store.release = (tenant, incarnation, runs) => {
    count.commits++;
    return release(tenant, incarnation, runs);
  };
  store.close = async () => {
    await close();
    await real.end();
  };
  return { store, count };
}
