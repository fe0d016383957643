import { afterEach, expect, test, vi } from "vitest";
import { CliFolder } from "../../../test/support/cli-process.ts";

// Each command is a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let folder: CliFolder;
afterEach(() => folder.close());

interface RunDocument {
  readonly runId: string;
  readonly status: string;
  readonly output: unknown;
  readonly tickets: readonly { readonly ticketId: string }[];
}

const INPUT = '{"guests":["Ada","Grace"]}';

test("from an empty folder: init, run, ps, tree, show, logs, agents, doctor", async () => {
  folder = new CliFolder();
  const init = await folder.run(["init"]);
  expect(init).toMatchObject({ code: 0, stdout: `errand run party --input '${INPUT}'\n` });
  expect(folder.has("errand.config.ts") && folder.has("agents/party.ts")).toBe(true);

  const run = await folder.run(["run", "party", "--input", INPUT]);
  expect(run.code).toBe(0);
  expect(JSON.parse(run.stdout)).toEqual({
    sent: 2,
    letters: ["Dear Ada, you are invited.", "Dear Grace, you are invited."],
  });
  expect(run.stderr).toMatch(/party started[\s\S]*writer completed: "Dear Ada[\s\S]*completed in/);
  expect(folder.has(".errand/.gitignore")).toBe(true);

  const live = await folder.run(["ps"]);
  expect(live).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining("errand ps --all") as string,
  });
  const { runs } = await folder.json<{ runs: { runId: string; status: string; agent: string }[] }>(
    "ps",
    "--all",
  );
  expect(runs).toMatchObject([{ status: "completed", agent: "party" }]);
  const id = runs[0]?.runId ?? "";

  const ps = await folder.run(["ps", "--all", "--children", "--state", "completed"]);
  expect(ps.stdout.trim().split("\n")).toHaveLength(4);
  expect(ps.stdout).toContain(id);

  const tree = await folder.run(["tree", id]);
  expect(tree.stdout).toMatch(
    /^✓ completed party {2}run_.*\n├─ ✓ completed writer .*\n└─ ✓ completed writer .*\n$/,
  );
  expect(await folder.json("tree", id)).toMatchObject({
    tree: { runId: id, status: "completed", children: [{ agent: "writer" }, { agent: "writer" }] },
    tickets: [],
  });

  const show = await folder.json<{ calls: { delegation: { delegationId: string } | null }[] }>("show", id);
  expect(show).toMatchObject({
    kind: "run",
    runId: id,
    status: "completed",
    why: "It has ended.",
    input: { guests: ["Ada", "Grace"] },
    attempts: [{ attempt: 1, failed: null }],
    calls: [
      { call: "1.0", tool: "agent_run", phase: "completed", outcome: { ok: true } },
      { call: "1.1", tool: "agent_run", phase: "completed" },
      { call: "2.0", tool: "deliver", executions: 1, outcome: { ok: true, value: "delivered" } },
      { call: "3.0", tool: "deliver" },
    ],
    effects: [{ tool: "deliver", outcome: "done" }, { tool: "deliver" }],
    end: { kind: "completed" },
    contract: null,
    tickets: [],
  });
  const delegationId = show.calls[0]?.delegation?.delegationId ?? "";
  expect(await folder.json("show", delegationId)).toMatchObject({
    kind: "delegation",
    status: "closed",
    contract: { goal: "Invite Ada", contract_version: 1 },
    child: { agent: "writer", status: "completed" },
  });
  expect(await folder.json("show", "party")).toMatchObject({ kind: "publication", agentKind: "function" });
  for (const any of [id, delegationId, "writer"]) {
    expect(await folder.run(["show", any])).toMatchObject({ code: 0, stderr: "" });
  }

  const logs = await folder.run(["logs", id]);
  expect(logs.stdout).toMatch(/party created with [\s\S]*party completed: .*\n$/);
  const lines = (await folder.run(["logs", id, "--json"])).stdout.trim().split("\n");
  const facts = lines.map((line) => JSON.parse(line) as { seq: number; fact: { type: string } });
  expect(facts.at(0)?.fact.type).toBe("run_created");
  expect(facts.at(-1)?.fact.type).toBe("run_ended");
  const half = facts[Math.floor(facts.length / 2)]?.seq ?? 0;
  const rest = (await folder.run(["logs", id, "--json", "--follow", "--after", String(half)])).stdout;
  expect(rest.trim().split("\n")).toEqual(
    lines.filter((line) => (JSON.parse(line) as { seq: number }).seq > half),
  );

  expect(await folder.json("agents")).toMatchObject({
    agents: [
      { name: "party", newest: true, workers: [] },
      { name: "writer", newest: true },
    ],
  });
  const doctor = await folder.json<{ checks: { name: string; status: string }[] }>("doctor");
  const checks = doctor.checks.filter((check) => check.name !== "database" || check.status !== "ok");
  expect(checks.map((check) => [check.name, check.status])).toEqual(
    [
      "node",
      "driver",
      "config",
      "agents",
      "store",
      "schema",
      "journal",
      "workers",
      "runs",
      "queue",
      "tickets",
    ].map((name) => [name, "ok"]),
  );
  expect(await folder.json("verify")).toMatchObject({ runs: 3, problems: [], truncated: false });
  expect(await folder.json("migrate", "--status")).toMatchObject({ exists: true, pending: [], applied: 0 });
});

test("a person is asked: exit 4, tickets, resume, and the same run goes on to its end", async () => {
  folder = new CliFolder();
  await folder.run(["init", "--yes", "--quiet"]);
  const args = ["run", "party", "--key", "friday", "--input", '{"guests":["Ada"],"confirm":true}'];
  const waiting = await folder.run(args);
  expect(waiting).toMatchObject({ code: 4, stdout: "" });
  const { tickets } = await folder.json<RunDocument>("tickets");
  const ticketId = tickets[0]?.ticketId ?? "";
  expect(tickets).toMatchObject([{ kind: "input_required", prompt: "Send 1 invitations?", status: "open" }]);
  expect(waiting.stderr).toContain(`errand resume ${ticketId} --answer true`);

  const again = await folder.run([...args, "--json"]);
  expect(again.code).toBe(4);
  const document = JSON.parse(again.stdout) as RunDocument;
  expect(document).toMatchObject({ status: "awaiting", output: null, tickets: [{ ticketId }] });
  expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: "WAITING" } });
  const human = await folder.run(["tickets"]);
  expect(human.stdout).toContain(`errand resume ${ticketId} --answer true`);
  expect((await folder.run(["show", ticketId])).stdout).toContain("Send 1 invitations?");

  const wrong = await folder.run(["resume", ticketId, "--answer", '"perhaps"']);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("TICKET_ANSWER_INVALID") as string,
  });
  expect((await folder.run(["resume", ticketId, "--approve"])).code).toBe(6);
  expect((await folder.run(["resume", ticketId])).code).toBe(2);
  const resume = (answer: string) =>
    folder.run(["resume", ticketId, "--answer", answer, "--decision-id", "one", "--json"]);
  expect(JSON.parse((await resume("true")).stdout)).toEqual({
    runId: document.runId,
    repeated: false,
    ticketId,
  });
  expect(JSON.parse((await resume("true")).stdout)).toMatchObject({ repeated: true });
  expect((await resume("false")).code).toBe(6);

  const done = await folder.run(args);
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toMatchObject({ sent: 1 });
  expect(await folder.json("tickets")).toEqual({ tickets: [] });
  expect(await folder.json("tickets", "--all", "--run", document.runId)).toMatchObject({
    tickets: [{ ticketId, status: "decided" }],
  });
});

test("cancel, pause and continue are requests that a run obeys", async () => {
  folder = new CliFolder();
  await folder.run(["init", "--yes", "--quiet"]);
  const ask = ["run", "party", "--input", '{"guests":["Ada"],"confirm":true}', "--json"];
  const { runId } = JSON.parse((await folder.run(ask)).stdout) as RunDocument;
  expect(await folder.json("pause", runId)).toEqual({ runId, recorded: true, ended: false });
  expect(await folder.json("continue", runId)).toEqual({ runId, recorded: true, ended: false });
  expect(await folder.json("cancel", runId, "--reason", "rain")).toEqual({
    runId,
    recorded: true,
    ended: false,
  });
  const worker = folder.start(["worker"]);
  await worker.says(/party canceled: rain/);
  worker.child.kill("SIGTERM");
  expect(await worker.finished).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("Stopped.") as string,
  });
  expect(await folder.json("show", runId)).toMatchObject({
    status: "canceled",
    end: { kind: "canceled", reason: "rain" },
    requests: [{ request: "pause" }, { request: "continue" }, { request: "cancel", reason: "rain" }],
  });
  expect(await folder.json("cancel", runId)).toMatchObject({ ended: true });
});

test("init overwrites nothing unless it is told to", async () => {
  folder = new CliFolder();
  folder.write("errand.config.ts", "export default { agents: [] };\n");
  const refused = await folder.run(["init", "--json"]);
  expect(refused).toMatchObject({ code: 6, stdout: "" });
  expect(JSON.parse(refused.stderr)).toMatchObject({
    error: { fix: expect.stringContaining("--force") as string },
  });
  expect(folder.has("agents/party.ts")).toBe(false);
  expect(await folder.json("init", "--force")).toMatchObject({
    written: ["errand.config.ts", "agents/party.ts"],
  });
});
