// A process that opens a PostgreSQL store for postgres-store.test.ts, once at its start and once more for each line it
// is sent: `node --import jiti/register postgres-child.ts URL SCHEMA`
import { createInterface } from "node:readline";
import { createPostgresStore } from "../../src/stores/postgres/index.ts";

const [connectionString = "", schema = ""] = process.argv.slice(2);

async function open(): Promise<void> {
  const store = await createPostgresStore({ connectionString, schema });
  await store.close();
  process.stdout.write("opened\n");
}

process.stdout.write("ready\n");
for await (const line of createInterface(process.stdin)) {
  if (line === "open") await open();
  else break;
}
process.stdin.destroy();
