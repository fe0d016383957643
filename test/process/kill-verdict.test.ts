import { describe, expect, it } from "vitest";
import { PAGE_ON_CALL, POST_NOTICE } from "./kill-agents.ts";
import { type Evidence, figuresOf, findProblems } from "./kill-verdict.ts";
import type { RunRecord } from "./tree-record.ts";

const root: RunRecord = {
  runId: "run_root",
  place: "day",
  end: "completed",
  attempt: 1,
  history: "ask\nanswer",
  delegations: ["1.0 run_notify", "1.1 run_page"],
  children: ["run_notify", "run_page"],
  effects: [],
  unknownCalls: 0,
};
const leaf = { ...root, delegations: [], children: [] };
const notify: RunRecord = {
  ...leaf,
  runId: "run_notify",
  place: "day/notify",
  effects: [{ key: "run_notify:1.0", tool: POST_NOTICE, outcome: "done" }],
};
const page: RunRecord = {
  ...leaf,
  runId: "run_page",
  place: "day/page",
  effects: [{ key: "run_page:1.0", tool: PAGE_ON_CALL, outcome: "done" }],
};
const sound: Evidence = {
  reference: [root, notify, page],
  records: [root, notify, page],
  outside: [
    { key: "run_notify:1.0", tool: POST_NOTICE, requests: 2 },
    { key: "run_page:1.0", tool: PAGE_ON_CALL, requests: 1 },
  ],
  seen: new Set(["run_root", "run_page"]),
  referenceReview: "# Review",
  review: "# Review",
};
const unknownPage: RunRecord = {
  ...page,
  history: "ask\nunknown",
  effects: [{ key: "run_page:1.0", tool: PAGE_ON_CALL, outcome: "unknown" }],
  unknownCalls: 1,
};

describe("the verdict on a killed job", () => {
  it("finds nothing in a sound one, repeated requests under one key included", () => {
    expect(findProblems(sound)).toEqual([]);
    expect(figuresOf(sound)).toMatchObject({
      idempotentEffects: 1,
      idempotentRequests: 2,
      historiesCompared: 3,
    });
  });

  it("accepts an unknown outcome where nothing may be repeated, and compares only what it has not reached (L9, L10)", () => {
    const records = [{ ...root, history: "ask\nother" }, notify, unknownPage];
    for (const outside of [sound.outside, sound.outside.slice(0, 1)]) {
      const evidence = { ...sound, records, outside };
      expect(findProblems(evidence)).toEqual([]);
      expect(figuresOf(evidence)).toMatchObject({ unknownCalls: 1, historiesCompared: 1 });
    }
  });

  it.each<readonly [string, Partial<Evidence>, string]>([
    [
      "a second child",
      { records: [{ ...root, children: ["run_notify", "run_page", "run_x"] }, notify, page] },
      "has the children",
    ],
    [
      "a call that opened twice",
      { records: [{ ...root, delegations: ["1.0 run_notify", "1.0 run_page"] }, notify, page] },
      "twice",
    ],
    ["a Run that is missing", { records: [root, notify] }, "the tree is"],
    ["a Run that was there before", { seen: new Set(["run_gone"]) }, "is gone"],
    ["a second attempt", { records: [root, { ...notify, attempt: 2 }, page] }, "the tree is"],
    [
      "another history",
      { records: [root, { ...notify, history: "ask\nother" }, page] },
      "differs at message 1",
    ],
    ["another review", { review: "# Other" }, "review.md differs"],
    [
      "a repeat of what may never be repeated",
      { outside: [{ key: "run_page:1.0", tool: PAGE_ON_CALL, requests: 2 }] },
      "was, 2 times",
    ],
    ["an effect that never happened", { outside: sound.outside.slice(1) }, "nothing happened"],
    [
      "an effect under a key of no call",
      { outside: [...sound.outside, { key: "run_page:9.9", tool: PAGE_ON_CALL, requests: 1 }] },
      "which no call has",
    ],
    [
      "a replay-safe call with an unknown outcome",
      {
        records: [
          root,
          { ...notify, effects: [{ key: "run_notify:1.0", tool: POST_NOTICE, outcome: "unknown" }] },
          page,
        ],
      },
      "is unknown",
    ],
  ])("finds %s (L9, L10, L14)", (_what, change, problem) => {
    expect(findProblems({ ...sound, ...change }).join("\n")).toContain(problem);
  });
});
