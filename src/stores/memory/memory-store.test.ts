import { describe, test } from "vitest";
import { HandClock } from "../../testing/hand-clock.ts";
import { registerStoreContract } from "../../testing/store-contract/register.ts";
import { createMemoryStore } from "./memory-store.ts";

describe("memory store", () => {
  registerStoreContract(test, () => {
    const clock = new HandClock();
    return { clock, open: async () => createMemoryStore({ clock }) };
  });
});
