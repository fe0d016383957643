import { startPostgres } from "./postgres.ts";

/** One PostgreSQL server for the whole run of the tests; each test has a schema of its own in it. */
export default async function setup(): Promise<() => Promise<void>> {
  const server = await startPostgres();
  process.env["ERRAND_TEST_POSTGRES_URL"] = server.url;
  return () => server.stop();
}
