import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CliFolder } from "../../../test/support/cli-process.ts";

// Each command is a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let folder: CliFolder;
beforeEach(() => {
  folder = new CliFolder();
});
afterEach(() => folder.close());

test.each<[why: string, name: string, text: string, says: RegExp]>([
  ["a syntax error", "errand.config.ts", "export default {{", /CONFIG_FAILED[\s\S]*errand\.config\.ts/],
  ["a throw", "errand.config.ts", 'throw new Error("no key");', /no key.*errand\.config\.ts:1/],
  ["a missing package", "errand.config.ts", 'import "left-pad-x";', /npm install left-pad-x/],
  ["no default export", "errand.config.ts", "export const a = 1;", /has a field "a"|is undefined/],
  ["a wrong field", "errand.config.mjs", "export default { agent: [] };", /INVALID_CONFIG.*field "agent"/],
  ["a wrong value", "errand.config.json", '{ "tenant": 5 }', /`tenant` of the default export of .* is 5/],
  [
    "a wrong agent",
    "errand.config.ts",
    'import { functionAgent } from "errand"; functionAgent({ name: "a b" } as never);',
    /INVALID_AGENT.*"a b".*errand\.config\.ts:1/,
  ],
])("a config with %s says where and what to do", async (_why, name, text, says) => {
  folder.write(name, text);
  const done = await folder.run(["ps"]);
  expect(done.code).toBe(2);
  expect(done.stderr).toMatch(says);
  expect(done.stderr).not.toMatch(/\n {4}at /);
  const doctor = await folder.json<{ checks: { name: string; status: string; fix: string }[] }>("doctor");
  expect(doctor.checks.find((check) => check.name === "config")?.status).toBe("fail");
});

test("without a config it says how to get one", async () => {
  const done = await folder.run(["run", "x"]);
  expect(done.code).toBe(2);
  expect(done.stderr).toContain("errand init");
});

test("a config of a folder above is found, and its store stands beside it", async () => {
  folder.write(
    "errand.config.mts",
    `import { functionAgent, defineConfig } from "errand";
     import { createSqliteStore } from "errand/sqlite";
     import { modelAgent } from "errand/model";
     import { HandClock } from "errand/testing";
     const hello = functionAgent({ name: "hello", version: "1", inputSchema: true, outputSchema: true,
       run: () => [typeof createSqliteStore, typeof modelAgent, typeof HandClock] });
     export default defineConfig({ agents: [hello], store: "my.db", tenant: "acme" });`,
  );
  mkdirSync(`${folder.path}/below/it`, { recursive: true });
  expect(await folder.run(["run", "hello", "-q"], { cwd: `${folder.path}/below/it` })).toMatchObject({
    code: 0,
    stdout: '["function","function","function"]\n',
  });
  expect(folder.has("my.db")).toBe(true);
  expect(await folder.json("ps", "--all")).toMatchObject({ runs: [{ agent: "hello" }] });
  expect(await folder.json("ps", "--all", "--tenant", "other")).toMatchObject({ runs: [] });
  folder.write("errand.config.mts", "broken(");
  const aside = await folder.run(["ps", "--all", "--store", "my.db", "--tenant", "acme"]);
  expect(aside).toMatchObject({ code: 0, stderr: expect.stringContaining("left aside") as string });
});

test("a store of the config's own is opened by it", async () => {
  folder.write(
    "errand.config.ts",
    `import { functionAgent } from "errand";
     import { createMemoryStore } from "errand/memory";
     const hello = functionAgent({ name: "hello", version: "1", inputSchema: true, outputSchema: true, run: () => 1 });
     export default { agents: [hello], store: () => createMemoryStore() };`,
  );
  expect(await folder.run(["run", "hello", "-q"])).toMatchObject({ code: 0, stdout: "1\n" });
  expect((await folder.run(["migrate"])).code).toBe(2);
});
