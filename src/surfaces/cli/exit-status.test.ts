import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CliFolder, until } from "../../../test/support/cli-process.ts";

// Each command is a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Agents that end in every way there is. */
const CONFIG = `
import { defineConfig, defineTool, functionAgent } from "errand";
const any = { version: "1", inputSchema: true, outputSchema: true };
const hang = (signal: AbortSignal) => new Promise<never>((_, reject) => {
  signal.addEventListener("abort", () => reject(signal.reason));
});
const ok = functionAgent({ ...any, name: "ok", run: (_ctx, input) => input });
const bad = functionAgent({ ...any, name: "bad", maxAttempts: 1, run: () => { throw new Error("no luck"); } });
const slow = functionAgent({ ...any, name: "slow", run: (ctx) => hang(ctx.signal) });
const strict = functionAgent({ ...any, name: "strict", inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }, run: () => 1 });
const deploy = defineTool({ name: "deploy", description: "Deploys.", inputSchema: { type: "object" }, replay: "never", effect: "any", approval: true, approvalPrompt: () => "Deploy?", run: () => "deployed" });
const careful = functionAgent({ ...any, name: "careful", tools: [deploy], run: (ctx) => ctx.tool(deploy, {}) as never });
export default defineConfig({ agents: [ok, bad, slow, strict, careful] });
`;

const folder = new CliFolder();
beforeAll(async () => {
  folder.write("errand.config.ts", CONFIG);
  await folder.run(["migrate"]);
});
afterAll(() => folder.close());

const NO_RUN = "run_00000000000000000000beef";

test.each<[code: number, why: string, args: readonly string[], says: RegExp]>([
  [2, "an unknown command", ["runn"], /Did you mean run\?/],
  [2, "an unknown option", ["ps", "--al"], /Did you mean --all\?/],
  [2, "an argument is missing", ["show"], /Missing required argument 'id'/],
  [2, "an option's value is wrong", ["ps", "--limit", "0"], /--limit a whole number of at least 1/],
  [2, "an unknown state", ["ps", "--state", "runing"], /Did you mean running\?/],
  [2, "the input is not JSON", ["run", "ok", "--input", "hello"], /--input is not JSON[\s\S]*'"hello"'/],
  [2, "the input does not fit", ["run", "strict"], /INVALID_INPUT[\s\S]*--input '\{"n":1\}'/],
  [2, "the input is given twice", ["run", "ok", "--input", "1", "--input-file", "x"], /cannot be used with/],
  [2, "no answer", ["resume", NO_RUN], /Give --answer/],
  [2, "no such config", ["ps", "--config", "nowhere.ts"], /There is no config .*nowhere\.ts/],
  [2, "a tenant that cannot be", ["ps", "--tenant", "a b"], /"a b" is not a tenant id/],
  [3, "the run failed", ["run", "bad"], /RUN_FAILED.*no luck[\s\S]*errand show run_/],
  [4, "a person is asked", ["run", "careful"], /WAITING[\s\S]*errand worker/],
  [5, "no such run", ["show", NO_RUN], /NOT_FOUND/],
  [5, "no such agent", ["run", "okay"], /There is no agent "okay"/],
  [5, "no id at all", ["tree", "latest"], /"latest" is not the id of a run/],
  [5, "no database", ["ps", "--store", "typo.db"], /There is no database .*typo\.db/],
  [124, "it takes too long", ["run", "slow", "--timeout", "300ms"], /WAIT_TIMEOUT.*still running/],
])("%d: %s", async (code, _why, args, says) => {
  const done = await folder.run(args);
  expect(done.stderr).toMatch(says);
  expect(done).toMatchObject({ code, stdout: "" });
  // With --json stderr is one error, and stdout at most the run that it is about.
  const json = await folder.run([...args, "--json"]);
  expect(json.code).toBe(code);
  const { error } = JSON.parse(json.stderr) as { error: Record<string, string> };
  expect(Object.keys(error)).toEqual(["code", "message", "fix"]);
  expect(json.stdout).toMatch(/^$|^\{"status":"[a-z]+","runId":"run_[0-9a-f]+".*\}\n$/);
});

test("0: help and the version; 2 when nothing was asked", async () => {
  const help = await folder.run(["--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(help.stdout).toMatch(/Exit codes:[\s\S]*130 {2}interrupted/);
  expect((await folder.run(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  const nothing = await folder.run([]);
  expect(nothing).toMatchObject({ code: 2, stdout: "" });
  expect(nothing.stderr).toContain("Usage: errand");
});

test("6: the same key with other input", async () => {
  const start = (input: string) => folder.run(["run", "ok", "--key", "k6", "--input", input]);
  expect(await start("1")).toMatchObject({ code: 0, stdout: "1\n" });
  expect(await start("1")).toMatchObject({ code: 0, stdout: "1\n" });
  expect(await start("2")).toMatchObject({
    code: 6,
    stderr: expect.stringContaining("START_CONFLICT") as string,
  });
});

test("7: the store cannot be opened, or is not one", async () => {
  folder.write("text.db", "this is not a database, and long enough to be looked at ".repeat(40));
  expect(await folder.run(["ps", "--store", "text.db"])).toMatchObject({ code: 7 });
  // Root may write anywhere, so a path below a file stands in for what cannot be made.
  const run = await folder.run(["run", "ok", "--store", "text.db/errand.db"]);
  expect(run).toMatchObject({ code: 7, stderr: expect.stringContaining("STORE_UNAVAILABLE") as string });
});

test("130: interrupted, with what to do next; the run is kept", async () => {
  const run = folder.start(["run", "slow", "--key", "again"]);
  await run.says(/run_\w+ started/);
  await until(
    async () => (await folder.json<{ runs: unknown[] }>("ps", "--state", "running")).runs.length > 0,
  );
  run.child.kill("SIGINT");
  const done = await run.finished;
  expect(done).toMatchObject({ code: 130, stdout: "" });
  const runId = /run_[0-9a-f]+/.exec(done.stderr)?.[0] ?? "";
  expect(done.stderr).toContain("errand worker");
  expect(done.stderr).toContain(`errand cancel ${runId}`);
  expect(await folder.json("show", runId)).toMatchObject({
    status: "ready",
    why: expect.stringContaining("no worker") as string,
  });
});

test("--json under run gives the end and the output beside the run", async () => {
  expect(await folder.json("run", "ok", "--input", '{"a":[1]}')).toMatchObject({
    status: "completed",
    agent: "ok",
    output: { a: [1] },
    end: { kind: "completed", output: { a: [1] } },
    tickets: [],
  });
  const bad = await folder.run(["run", "bad", "--json"]);
  expect(JSON.parse(bad.stdout)).toMatchObject({ status: "failed", output: null, end: { kind: "failed" } });
});

test("input comes from a file or from stdin", async () => {
  folder.write("input.json", "[1, 2]");
  expect(await folder.run(["run", "ok", "--input-file", "input.json", "-q"])).toMatchObject({
    stdout: "[1,2]\n",
    stderr: "",
  });
  expect(await folder.run(["run", "ok", "-", "-q"], { input: '"piped"' })).toMatchObject({
    stdout: '"piped"\n',
  });
});

test("colour only where it is wanted, and --quiet leaves errors", async () => {
  // oxlint-disable-next-line no-control-regex -- colours begin with an escape
  const colored = /\u001b\[/;
  const ps = (env: NodeJS.ProcessEnv, ...more: string[]) => folder.run(["ps", "--all", ...more], { env });
  expect((await ps({})).stdout).not.toMatch(colored);
  expect((await ps({ FORCE_COLOR: "1" })).stdout).toMatch(colored);
  expect((await ps({ FORCE_COLOR: "1", NO_COLOR: "1" })).stdout).not.toMatch(colored);
  expect((await ps({ FORCE_COLOR: "1" }, "--no-color")).stdout).not.toMatch(colored);
  const quiet = await folder.run(["show", NO_RUN, "--quiet"]);
  expect(quiet.stderr).toContain("NOT_FOUND");
});

test("an id that was cut short is answered with the whole one", async () => {
  const { runId } = await folder.json<{ runId: string }>("run", "ok", "--input", "1");
  const { stderr } = await folder.run(["show", runId.slice(0, 16)]);
  expect(stderr).toContain(`Did you mean ${runId}?`);
});

test("a reader that goes away ends the program in silence", async () => {
  const { runId } = await folder.json<{ runId: string }>("run", "ok", "--input", "1");
  const logs = folder.start(["logs", runId]);
  logs.child.stdout?.destroy();
  expect(await logs.finished).toMatchObject({ code: 0, stderr: "" });
});

test("every command has help with examples", async () => {
  const { stdout } = await folder.run(["--help"]);
  const listed = stdout.slice(stdout.indexOf("Commands:"), stdout.indexOf("Examples:"));
  const commands = [...listed.matchAll(/^ {2}([a-z]+) /gm)].map((found) => found[1] ?? "");
  expect(commands.length).toBeGreaterThanOrEqual(16);
  for (const name of commands.filter((one) => one !== "help")) {
    const help = (await folder.run([name, "--help"])).stdout;
    expect(help).toMatch(/Examples:\n {2}\$ errand /);
    expect(help).toContain(`Usage: errand ${name} `);
    expect(help).toContain("--json");
  }
});
