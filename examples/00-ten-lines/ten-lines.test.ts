import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createErrand } from "errand";
import { createSqliteStore } from "errand/sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const came = process.cwd();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "errand-ten-lines-"));
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(came);
  rmSync(folder, { recursive: true });
  vi.restoreAllMocks();
});

it("prints what the children said, and a second run finds it done", async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => undefined);
  for (let time = 1; time <= 2; time++) {
    vi.resetModules();
    await import("./ten-lines.ts");
    expect(printed).toHaveBeenNthCalledWith(time, ["Hello Ada", "Hello Grace"]);
  }
  await using errand = await createErrand({
    store: createSqliteStore("errand.db"),
    agents: [],
    worker: false,
  });
  const runs = await errand.list();
  expect(runs.map((run) => `${run.agent} ${run.end?.kind}`).sort((a, b) => a.localeCompare(b))).toEqual([
    "greeter completed",
    "greeter completed",
    "host completed",
  ]);
});

it("stands in the README as it is", () => {
  const code = readFileSync(new URL("./ten-lines.ts", import.meta.url), "utf8");
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  expect(readme).toContain(`\`\`\`ts\n${code}\`\`\`\n`);
});
