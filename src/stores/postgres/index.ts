export { createPostgresStore } from "./postgres-store.ts";
export type { PostgresStoreOptions } from "./postgres-store.ts";
export type { PostgresPool } from "../../sql/postgres-driver.ts";
