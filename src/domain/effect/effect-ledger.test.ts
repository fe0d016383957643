import { describe, expect, it } from "vitest";
import { TOOL_CALL } from "../../../test/support/domain-values.ts";
import type { RunFact } from "../run/run-fact.ts";
import type { CallRequest } from "../tool-batch/call-request.ts";
import { failed } from "../tool-batch/call-outcome.ts";
import { effectLedger } from "./effect-ledger.ts";

const published = (...calls: readonly CallRequest[]): RunFact => ({
  type: "step_published",
  step: 1,
  mode: "in_order",
  calls,
  message: null,
  historyDigest: null,
  usage: null,
});
const began = (execution = 1, index = 0): RunFact => ({ type: "call_executing", step: 1, index, execution });
const ok: RunFact = { type: "call_completed", step: 1, index: 0, outcome: { ok: true, value: null } };
const bad: RunFact = { type: "call_completed", step: 1, index: 0, outcome: failed("tool_error", "no") };
const unknown: RunFact = { type: "call_indeterminate", step: 1, index: 0, reason: "outcome_unknown" };
const neverBegun: RunFact = { type: "call_indeterminate", step: 1, index: 0, reason: "not_started" };

describe("L10 effectLedger", () => {
  it.each<[string, readonly RunFact[], readonly object[]]>([
    ["nothing while the call is only published", [published(TOOL_CALL)], []],
    ["a line once it began", [published(TOOL_CALL), began()], [{ outcome: "started", executions: 1 }]],
    ["done", [published(TOOL_CALL), began(), ok], [{ outcome: "done", executions: 1 }]],
    ["failed", [published(TOOL_CALL), began(), bad], [{ outcome: "failed", executions: 1 }]],
    [
      "unknown, never undone",
      [published(TOOL_CALL), began(), unknown],
      [{ outcome: "unknown", executions: 1 }],
    ],
    [
      "one line however often it began",
      [published(TOOL_CALL), began(), began(2), ok],
      [{ outcome: "done", executions: 2 }],
    ],
    [
      "refused, when it was not allowed to begin",
      [published(TOOL_CALL), bad],
      [{ outcome: "refused", executions: 0 }],
    ],
    ["nothing of a call that was sealed before it began", [published(TOOL_CALL), neverBegun], []],
    ["nothing of a tool without an effect", [published({ ...TOOL_CALL, effect: "none" }), began(), ok], []],
    [
      "nothing of a call that is no tool's",
      [published({ ...TOOL_CALL, kind: "delegation" }), began(), ok],
      [],
    ],
    ["nothing of a call that was not published", [began(), ok], []],
  ])("has %s", (_, facts, lines) => {
    expect(effectLedger("run_1", facts)).toMatchObject(lines);
    expect(effectLedger("run_1", facts)).toHaveLength(lines.length);
  });

  it("names each line by its effect key, the same that the tool was given", () => {
    const facts = [published(TOOL_CALL, TOOL_CALL), began(1, 1), began()];
    expect(effectLedger("run_1", facts).map((line) => line.key)).toEqual(["run_1:1.1", "run_1:1.0"]);
  });
});
