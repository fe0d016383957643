import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { HandClock } from "../../testing/hand-clock.ts";
import type { StoreHarness } from "../../testing/store-contract/contract-case.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createSqliteStore } from "./index.ts";

function harness(): StoreHarness {
  const clock = new HandClock();
  const folder = mkdtempSync(join(tmpdir(), "errand-sqlite-"));
  let databases = 0;
  const openLast = () => createSqliteStore(join(folder, `${databases}.db`), { clock, pollMs: 10 });
  return {
    clock,
    open() {
      databases += 1;
      return openLast();
    },
    openSecond: openLast,
    async reopen(store) {
      await store.close();
      return openLast();
    },
    async dispose() {
      rmSync(folder, { recursive: true });
    },
  };
}

describe("SQLite store", () => {
  registerStoreContract(test, harness, ["reopen", "openSecond", "limits", "users"]);
});
