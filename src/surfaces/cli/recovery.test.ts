import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CliFolder, until } from "../../../test/support/cli-process.ts";

// Each command is a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** A parent whose two children each append a line to a file; the second one waits for the file `open` to be there. */
const CONFIG = `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineConfig, defineTool, functionAgent } from "errand";
const append = defineTool({
  name: "append", description: "Appends a line.", replay: "never", effect: "any",
  inputSchema: { type: "object", properties: { line: { type: "string" } }, required: ["line"] },
  run: (input) => appendFileSync("lines.txt", (input as { line: string }).line + "\\n"),
});
const gate = defineTool({
  name: "gate", description: "Waits.", inputSchema: { type: "object" }, replay: "safe", effect: "read_only",
  run: async (_input, _context, signal) => {
    while (!existsSync("open")) await pause(10, undefined, { signal });
    return "open";
  },
});
const any = { version: "1", inputSchema: true, outputSchema: true };
const child = functionAgent({ ...any, name: "child", tools: [append, gate], run: async (ctx, input) => {
  if (input === "second") await ctx.tool(gate, {});
  await ctx.tool(append, { line: String(input) });
  return input;
} });
const parent = functionAgent({ ...any, name: "parent", roster: [child], run: async (ctx) =>
  [await ctx.run(child, "first"), await ctx.run(child, "second")] as never });
export default defineConfig({ agents: [parent], worker: { leaseMs: 900, sweepMs: 100, pollMs: 50 } });
`;

let folder: CliFolder;
beforeEach(() => {
  folder = new CliFolder();
  folder.write("errand.config.ts", CONFIG);
});
afterEach(() => folder.close());

const START = ["run", "parent", "--key", "k"];

/** Starts the run and kills its process, without a word, while the second child's tool is under way. */
async function killedInTheMiddle(): Promise<string> {
  const run = folder.start(START);
  await run.says(/child completed: "first"/);
  const { runs } = await folder.json<{ runs: { runId: string }[] }>("ps");
  const runId = runs[0]?.runId ?? "";
  await until(async () => (await folder.run(["logs", runId])).stdout.includes("call 1.0 gate executing"));
  run.child.kill("SIGKILL");
  expect(await run.finished).toMatchObject({ signal: "SIGKILL" });
  return runId;
}

const lines = () => readFileSync(join(folder.path, "lines.txt"), "utf8");

test("a run whose process was killed is finished by a worker: nothing lost, nothing done twice", async () => {
  const runId = await killedInTheMiddle();
  const worker = folder.start(["worker"]);
  const watch = folder.start(["tree", runId, "-w", "--json"]);
  folder.write("open", "");
  await worker.says(/parent completed: \["first","second"\]/);
  const { code, stdout } = await watch.finished;
  expect(code).toBe(0);
  const last = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as unknown;
  expect(last).toMatchObject({ tree: { status: "completed", children: [{}, {}] } });
  expect(lines()).toBe("first\nsecond\n");
  worker.child.kill("SIGINT");
  expect(await worker.finished).toMatchObject({ code: 0 });
});

test("the same command with its key takes a killed run up again and prints its result", async () => {
  const runId = await killedInTheMiddle();
  folder.write("open", "");
  const again = await folder.run(START);
  expect(again).toMatchObject({ code: 0, stdout: '["first","second"]\n' });
  expect(again.stderr).toContain(runId);
  expect(lines()).toBe("first\nsecond\n");
  const { runs } = await folder.json<{ runs: unknown[] }>("ps", "--all", "--children");
  expect(runs).toHaveLength(3);
});

test("a detached run waits for a worker, says so, and one that only watches sees it end", async () => {
  folder.write("open", "");
  const detached = await folder.run(["run", "parent", "--detach"]);
  expect(detached).toMatchObject({ code: 0, stderr: expect.stringContaining("errand worker") as string });
  const runId = detached.stdout.trim();
  expect(await folder.json("show", runId)).toMatchObject({
    status: "ready",
    why: expect.stringContaining("no worker") as string,
  });
  const watcher = folder.start(["run", "parent", "--key", "w", "--worker-less"]);
  await watcher.says(/started/);
  const follower = folder.start(["logs", runId, "-f"]);
  const worker = folder.start(["worker", "--json", "--concurrency", "2"]);
  expect(await watcher.finished).toMatchObject({ code: 0, stdout: '["first","second"]\n' });
  expect(await follower.finished).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("parent completed") as string,
  });
  worker.child.kill("SIGTERM");
  const { code, stdout } = await worker.finished;
  expect(code).toBe(0);
  const events = stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { event: string }).event);
  expect([events[0], events.at(-1)]).toEqual(["worker_started", "worker_stopped"]);
  expect(events.filter((event) => event === "run_ended")).toHaveLength(6);
});

test("the second signal ends a worker whose work does not stop", async () => {
  const worker = folder.start(["worker", "--grace", "10m"]);
  await worker.says(/carries/);
  const { stdout } = await folder.run(["run", "parent", "--detach"]);
  await until(async () => (await folder.run(["logs", stdout.trim()])).stdout.includes("gate executing"));
  worker.child.kill("SIGTERM");
  await worker.says(/Once more ends it at once/);
  worker.child.kill("SIGTERM");
  expect(await worker.finished).toMatchObject({ code: 130 });
});
