import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests and examples import the package by its own name, as a user does; here that means the sources.
    alias: [
      { find: /^errand$/, replacement: source("surfaces/library/index.ts") },
      { find: /^errand\/sqlite$/, replacement: source("stores/sqlite/index.ts") },
      { find: /^errand\/postgres$/, replacement: source("stores/postgres/index.ts") },
      { find: /^errand\/memory$/, replacement: source("stores/memory/index.ts") },
      { find: /^errand\/model$/, replacement: source("agents/model/index.ts") },
      { find: /^errand\/testing$/, replacement: source("testing/index.ts") },
    ],
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"],
    globalSetup: ["test/support/global-postgres.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts", "src/testing/**"],
    },
  },
});
