import { describe, test } from "vitest";
import { HandClock } from "../../testing/hand-clock.ts";
import type { StoreHarness } from "../../testing/store-contract/contract-case.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createMemoryStore } from "./memory-store.ts";

describe("memory store", () => {
  const harness = (): StoreHarness => {
    const clock = new HandClock();
    return { clock, open: async () => createMemoryStore({ clock }) };
  };
  registerStoreContract(test, harness, ["limits", "users"]);
});
