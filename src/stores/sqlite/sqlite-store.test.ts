import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { HandClock } from "../../testing/hand-clock.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createSqliteStore } from "./index.ts";

describe("SQLite store", () => {
  registerStoreContract(test, () => {
    const clock = new HandClock();
    const folder = mkdtempSync(join(tmpdir(), "errand-sqlite-"));
    const open = () => createSqliteStore(join(folder, "errand.db"), { clock, pollMs: 10 });
    return {
      clock,
      open,
      openSecond: open,
      async reopen(store) {
        await store.close();
        return open();
      },
      async dispose() {
        rmSync(folder, { recursive: true });
      },
    };
  }, ["reopen", "openSecond"]);
});
