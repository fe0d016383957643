import { expect, test } from "vitest";
import { parseTenantId } from "../../src/domain/id.ts";
import { createPostgresStore } from "../../src/stores/postgres/index.ts";
import { newDatabase, startPostgres } from "../support/postgres.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

test("a connection that loses everything without a word is given up, and the next call has another one", async () => {
  const server = await startPostgres();
  const url = new URL(await newDatabase(server));
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  const tenant = parseTenantId("t");
  const store = await createPostgresStore({ connectionString: url.href, callTimeoutMs: 300 });
  try {
    await store.countRuns(tenant);
    proxy.swallow();
    await expect(store.countRuns(tenant)).rejects.toThrow("STORE_UNAVAILABLE");
    expect((await store.countRuns(tenant)).ready).toBe(0);
  } finally {
    await store.close();
    await proxy.stop();
    await server.stop();
  }
});
