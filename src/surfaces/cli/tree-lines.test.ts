import stringWidth from "string-width";
import { expect, test } from "vitest";
import { NO_USAGE } from "../../domain/budget/usage.ts";
import type { OpenTicket } from "../../runtime/host/resume-ticket.ts";
import type { TaskNode } from "../../runtime/view/task-tree.ts";
import { waitsForPeople } from "./run-status.ts";
import { type Style, styleOf } from "./style.ts";
import { type TreePicture, treeLines } from "./tree-lines.ts";

const UTF8 = { LANG: "en_US.UTF-8" };
const styled = (columns: number, env: NodeJS.ProcessEnv = { ...UTF8, NO_COLOR: "1" }): Style =>
  styleOf({ isTTY: true, columns }, env, undefined);

function node(agent: string, more: Partial<TaskNode> = {}): TaskNode {
  return {
    runId: `run_${agent.padEnd(8, "0")}` as never,
    rootRunId: "run_root0000" as never,
    parentRunId: null,
    delegationId: null,
    threadId: "thr_root0000" as never,
    agent,
    publication: `${agent}@0123456789abcdef` as never,
    depth: 0,
    state: "running",
    end: null,
    wait: null,
    attempt: 1,
    steps: 1,
    goal: null,
    contractVersion: null,
    createdAt: 1_000,
    endedAt: null,
    usage: NO_USAGE,
    totalUsage: NO_USAGE,
    children: [],
    ...more,
  };
}

const ended = (kind: string, detail: string | null = null): Partial<TaskNode> => ({
  state: "ended",
  end: { kind, detail },
  endedAt: 3_500,
});

const ticket: OpenTicket = {
  ticketId: `tkt_${"a".repeat(32)}` as never,
  runId: "run_deploy00" as never,
  rootRunId: "run_root0000" as never,
  kind: "approval",
  prompt: "Deploy 2.0 to production?",
  schema: true,
  openedAt: 2_000,
  deadlineAt: null,
  status: "open",
};

const tree = node("root", {
  state: "waiting",
  wait: { on: "children", delegationIds: [] },
  totalUsage: { ...NO_USAGE, modelCalls: 1, inputTokens: 1_200, outputTokens: 34, costMicros: 12_345 },
  children: [
    node("check", { ...ended("completed"), goal: "Check that everything is as it should be" }),
    node("broken", { ...ended("failed", "agent_error: no such\ntable"), attempt: 3 }),
    node("deploy", {
      state: "awaiting",
      wait: { on: "ticket", ticketId: ticket.ticketId, ticketKind: "approval" },
      children: [node("leaf")],
    }),
  ],
});

const picture = (more: Partial<TreePicture> = {}): TreePicture => ({
  tree,
  tickets: [ticket],
  notes: new Map([["run_leaf0000", "compare: row 3 of 9"]]),
  now: 63_000,
  style: styled(100),
  scope: [],
  ...more,
});

test("every row has its state as sign and word, agent, detail, attempt and time", () => {
  expect(treeLines(picture()).map((line) => line.replace(/ {3,}/g, "   "))).toEqual([
    "◐ waiting root   1.2k tok · cost 0.01 · 1m02s",
    "├─ ✓ completed check  Check that everything is as it should be   2.5s",
    "├─ ✗ failed broken  attempt 3 · agent_error: no such table   2.5s",
    "└─ ▲ awaiting deploy   1m02s",
    "   │  approval: Deploy 2.0 to production?",
    `   │  errand resume tkt_${"a".repeat(32)} --approve`,
    "   └─ ● running leaf  compare: row 3 of 9   1m02s",
  ]);
});

test("no row is wider than the terminal, except a word that must stay whole", () => {
  for (let columns = 20; columns <= 160; columns++) {
    for (const line of treeLines(picture({ style: styled(columns) }))) {
      if (line.includes("errand resume")) continue;
      expect(stringWidth(line), `${columns}: ${line}`).toBeLessThanOrEqual(columns);
    }
  }
});

test("a command that is too long is broken as a shell reads on, without a branch in its second line", () => {
  const lines = treeLines(picture({ style: styled(60) }));
  const at = lines.findIndex((line) => line.includes("errand resume"));
  expect(lines[at]).toMatch(/errand resume tkt_a{32} \\$/);
  expect(lines[at + 1]).toMatch(/^ +--approve$/);
});

test("in a pipe nothing is cut, ids are whole, and no column is filled", () => {
  const long = "x".repeat(500);
  const style = styleOf({}, UTF8, undefined);
  const [line] = treeLines(picture({ tree: node("root", { goal: long }), tickets: [], style, ids: true }));
  expect(line).toBe(`● running root  run_root0000 · ${long}  1m02s`);
});

test("colour comes on top of sign and word, and ASCII where the terminal cannot do more", () => {
  const plainText = treeLines(picture()).join("\n");
  const colored = treeLines(picture({ style: styled(100, { ...UTF8, FORCE_COLOR: "1" }) })).join("\n");
  expect(colored).toContain("\u001b[");
  // oxlint-disable-next-line no-control-regex -- colours begin with an escape
  expect(colored.replace(/\u001b\[[0-9;]*m/g, "")).toBe(plainText);
  const ascii = treeLines(picture({ style: styled(100, { LANG: "C", NO_COLOR: "1" }) })).join("\n");
  expect(ascii.replaceAll("·", "")).toMatch(/^[\u0020-\u007e\n]*$/);
  expect(ascii).toContain("! awaiting deploy");
});

test("a tree that is taller than the screen folds what is completed", () => {
  const children = Array.from({ length: 30 }, (_, at) => node(`done${at}`, ended("completed")));
  const tall = node("root", { children: [...children, node("late")] });
  const lines = treeLines(picture({ tree: tall, tickets: [], maxLines: 10 }));
  expect(lines).toHaveLength(3);
  expect(lines.at(-1)).toBe("└─ 30 completed");
});

test("control characters of a prompt or a goal cannot reach the terminal", () => {
  const hostile = "\u001b[2J\u001b]0;owned\u0007\r\nhello";
  const lines = treeLines(
    picture({ tree: node("deploy", { goal: hostile }), tickets: [{ ...ticket, prompt: hostile }] }),
  );
  // oxlint-disable-next-line no-control-regex -- the absence of control characters is the point
  expect(lines.join("")).not.toMatch(/[\u0000-\u001f]/);
});

test("a tree waits for people once nothing in it can go on by itself", () => {
  const asks = node("asks", { state: "awaiting" });
  const parent = (child: TaskNode): TaskNode =>
    node("parent", { state: "waiting", wait: { on: "children", delegationIds: [] }, children: [child] });
  expect(waitsForPeople(parent(asks))).toBe(true);
  expect(waitsForPeople(node("parent", { state: "awaiting", children: [node("busy")] }))).toBe(false);
  expect(waitsForPeople(node("parent", { state: "paused" }))).toBe(false);
  expect(waitsForPeople(parent(node("sleeps", { state: "waiting", wait: { on: "timer" } })))).toBe(false);
});
