import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CliFolder, until } from "../../../test/support/cli-process.ts";

// Each command is a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CONFIG = `
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineConfig, defineTool, functionAgent } from "errand";
const gate = defineTool({
  name: "gate", description: "Waits.", inputSchema: { type: "object" }, replay: "safe", effect: "read_only",
  run: async (_input, _context, signal) => {
    while (!existsSync("open")) await pause(10, undefined, { signal });
    return "open";
  },
});
const any = { version: "1", inputSchema: true, outputSchema: true };
const echo = functionAgent({ ...any, name: "echo", run: (_ctx, input) => input });
const slow = functionAgent({ ...any, name: "slow", tools: [gate], run: (ctx) => ctx.tool(gate, {}) });
export default defineConfig({ agents: [echo, slow], worker: { leaseMs: 1500, sweepMs: 100, pollMs: 50 } });
`;

let folder: CliFolder;
beforeEach(() => {
  folder = new CliFolder();
  folder.write("errand.config.ts", CONFIG);
});
afterEach(() => folder.close());

const asText = (pattern: RegExp) => expect.stringMatching(pattern) as string;

test("limits are set, shown, obeyed and named as the reason", async () => {
  await folder.run(["run", "echo", "--input", "1"]);
  expect(await folder.json("limits")).toMatchObject({ limits: { tenant: null, tree: null, agents: {} } });
  expect(await folder.run(["limits", "set"])).toMatchObject({ code: 2, stderr: asText(/Name --total/) });
  expect(await folder.run(["limits", "set", "--agent", "slow"])).toMatchObject({ code: 2 });
  const set = await folder.run(["limits", "set", "--total", "5", "--agent", "slow=0", "--agent", "echo=3"]);
  expect(set).toMatchObject({
    code: 0,
    stdout: asText(/tenant default +5 +0\n.*each tree +none[\s\S]*agent slow +0 +0/),
  });
  await folder.run(["limits", "set", "--agent", "echo=none", "--tree", "2"]);
  expect(await folder.json("limits")).toMatchObject({ limits: { tenant: 5, tree: 2, agents: { slow: 0 } } });
  const worker = folder.start(["worker"]);
  await worker.says(/carries/);
  const { stdout } = await folder.run(["run", "slow", "--detach"]);
  const runId = stdout.trim();
  expect(await folder.json("show", runId)).toMatchObject({ why: asText(/limit of agent slow is 0/) });
  folder.write("open", "");
  await folder.run(["limits", "set", "--agent", "slow=1"]);
  await until(async () => (await folder.json("show", runId))["status"] === "completed");
});

test("workers lists who lives, who is dead, and what each holds", async () => {
  const worker = folder.start(["worker"]);
  await worker.says(/carries/);
  const { stdout } = await folder.run(["run", "slow", "--detach"]);
  type Workers = {
    workers: { dead: boolean; holds: string[]; publications: string[]; heartbeatAgeMs: number }[];
  };
  await until(async () => (await folder.json<Workers>("workers")).workers[0]?.holds.length === 1);
  const { workers } = await folder.json<Workers>("workers", "--live");
  expect(workers).toMatchObject([{ dead: false, holds: [stdout.trim()] }]);
  expect(workers[0]?.publications).toHaveLength(2);
  expect((await folder.run(["workers"])).stdout).toMatch(/live +\S+ ago +1 +inc_\w+ +\S+\/\d+ +echo, slow/);
  folder.write("open", "");
  worker.child.kill("SIGTERM");
  await worker.finished;
  expect((await folder.json<Workers>("workers", "--live")).workers).toEqual([]);
  expect((await folder.run(["workers"])).stdout).toMatch(/dead/);
});

test("prune tells what would go, removes what is old, and says when nothing is", async () => {
  const run = await folder.run(["run", "echo", "--input", "1", "--json"]);
  const { runId } = JSON.parse(run.stdout.trim().split("\n").at(-1) ?? "") as { runId: string };
  expect(await folder.run(["prune"])).toMatchObject({ code: 2, stderr: asText(/--older-than/) });
  expect(await folder.run(["prune", "--older-than", "soon"])).toMatchObject({
    code: 2,
    stderr: asText(/30d/),
  });
  expect(await folder.json("prune", "--older-than", "30d")).toMatchObject({ trees: 0, runs: 0 });
  const dry = await folder.run(["prune", "--older-than", "0s", "--dry-run"]);
  expect(dry.stdout).toMatch(/^Would remove 1 tree of 1 run/);
  expect(await folder.json("show", runId)).toMatchObject({ status: "completed" });
  expect(await folder.json("prune", "--older-than", "0s")).toMatchObject({
    trees: 1,
    runs: 1,
    dryRun: false,
  });
  expect(await folder.run(["show", runId])).toMatchObject({ code: 5 });
  expect(await folder.run(["verify"])).toMatchObject({ code: 0 });
});

test("a person's runs are erased, shown as such, and verify accepts them", async () => {
  await folder.run(["run", "echo", "--input", '"kept"']);
  const run = await folder.run(["run", "echo", "--input", '"a secret"', "--user", "ada", "--json"]);
  const { runId } = JSON.parse(run.stdout.trim().split("\n").at(-1) ?? "") as { runId: string };
  expect(await folder.run(["erase", "--user", "ada"])).toMatchObject({ code: 2, stderr: asText(/--yes/) });
  expect(await folder.run(["erase", "--yes"])).toMatchObject({ code: 2, stderr: asText(/--tenant-data/) });
  expect(await folder.json("erase", "--user", "ada", "--yes")).toEqual({
    user: "ada",
    erased: 1,
    stillLive: 0,
  });
  expect(await folder.json("show", runId)).toMatchObject({
    status: "erased",
    input: null,
    why: asText(/erased/),
  });
  const shown = await folder.run(["show", runId]);
  expect(shown.stdout).toMatch(/erased/);
  expect(shown.stdout + (await folder.run(["logs", runId])).stdout).not.toContain("a secret");
  expect((await folder.run(["ps", "--all"])).stdout).toMatch(/erased/);
  expect(await folder.run(["verify"])).toMatchObject({ code: 0 });
  expect(await folder.json("erase", "--tenant-data", "--yes")).toEqual({ tenant: "default", runs: 2 });
  expect(await folder.json("ps", "--all")).toMatchObject({ runs: [] });
});

test("a tenant of which a run is running is not erased", async () => {
  const worker = folder.start(["worker"]);
  await worker.says(/carries/);
  await folder.run(["run", "slow", "--detach"]);
  const erase = ["erase", "--tenant-data", "--yes"];
  await until(async () => (await folder.run(["ps", "--state", "running"])).stdout.includes("slow"));
  expect(await folder.run(erase)).toMatchObject({ code: 6, stderr: asText(/1 run .*running/) });
  folder.write("open", "");
});

test("doctor tells what the store has to say", async () => {
  await folder.run(["run", "echo", "--input", "1"]);
  const { checks } = await folder.json<{ checks: { name: string; status: string; detail: string }[] }>(
    "doctor",
  );
  const details = checks.filter((check) => check.name === "database").map((check) => check.detail);
  expect(details).toEqual(
    expect.arrayContaining([
      asText(/^SQLite: \d/),
      "durability: full",
      asText(/^file: \d.* KiB$/),
      "tombstones: 0",
    ]),
  );
});

test("a worker answers probes; asked to stop it is not ready, and still alive", async () => {
  const worker = folder.start(["worker", "--health-port", "0", "--json", "--grace", "1m"]);
  const health = await started(worker);
  const get = async (path: string) => {
    const response = await fetch(`${health}${path}`);
    return [response.status, await response.json()] as const;
  };
  expect(await get("/health")).toEqual([200, { alive: true, pid: worker.child.pid }]);
  expect(await get("/ready")).toEqual([200, { ready: true, why: null }]);
  expect((await get("/other"))[0]).toBe(404);
  expect((await fetch(`${health}/ready`, { method: "POST" })).status).toBe(405);
  const { stdout } = await folder.run(["run", "slow", "--detach"]);
  await until(async () => (await folder.run(["logs", stdout.trim()])).stdout.includes("gate executing"));
  worker.child.kill("SIGTERM");
  await until(async () => (await get("/ready"))[0] === 503);
  expect(await get("/ready")).toEqual([503, { ready: false, why: "it is stopping" }]);
  expect((await get("/health"))[0]).toBe(200);
  folder.write("open", "");
  expect(await worker.finished).toMatchObject({ code: 0 });
  await expect(get("/health")).rejects.toThrow(/fetch failed/);
});

test("a worker whose port is taken says so and does not start", async () => {
  const first = folder.start(["worker", "--health-port", "0", "--json"]);
  const health = await started(first);
  const second = await folder.run(["worker", "--health-port", new URL(health).port]);
  expect(second).toMatchObject({ code: 2, stderr: asText(/Nothing can listen on 127\.0\.0\.1/) });
});

/** The address that a worker with `--json` prints. */
async function started(worker: ReturnType<CliFolder["start"]>): Promise<string> {
  const pattern = /"health":"([^"]+)"/;
  await worker.says(pattern);
  return pattern.exec(worker.printed())?.[1] ?? "";
}
