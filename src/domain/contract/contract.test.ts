import { describe, expect, expectTypeOf, it } from "vitest";
import { CONTRACT } from "../../../test/support/domain-values.ts";
import { parseRunId } from "../id.ts";
import type { RunHeader, RunOrigin } from "../run/run-header.ts";
import { type Contract, contractDigest, contractJson } from "./contract.ts";

describe("L19 a contract", () => {
  it("is stored under the snake_case names, complete, with its acceptance", () => {
    expect(contractJson(CONTRACT)).toEqual({
      delegation_id: CONTRACT.delegationId,
      contract_version: 1,
      root_run_id: CONTRACT.rootRunId,
      parent_run_id: CONTRACT.parentRunId,
      child_run_id: CONTRACT.childRunId,
      goal: "Find it.",
      input_schema: true,
      acceptance: { output_schema: { type: "object" } },
    });
  });

  it.each<[string, Partial<Contract>]>([
    ["version", { version: 2 }],
    ["goal", { goal: "Find it!" }],
    ["input schema", { inputSchema: { type: "string" } }],
    ["output schema", { outputSchema: true }],
    ["child", { childRunId: parseRunId("run_00000009") }],
    ["parent", { parentRunId: parseRunId("run_00000009") }],
    ["root", { rootRunId: parseRunId("run_00000009") }],
  ])("has another digest for another %s", (_, change) => {
    expect(contractDigest({ ...CONTRACT, ...change })).not.toBe(contractDigest(CONTRACT));
  });

  it("has the same digest whatever the order of its fields", () => {
    const reversed = Object.fromEntries(Object.entries(CONTRACT).reverse()) as unknown as Contract;
    expect(contractDigest(reversed)).toBe(contractDigest(CONTRACT));
  });

  it("comes with every child, and with no root", () => {
    expectTypeOf<RunOrigin["contract"]>().toEqualTypeOf<Contract>();
    expectTypeOf<RunHeader["origin"]>().toEqualTypeOf<RunOrigin | null>();
    expectTypeOf<Partial<Contract>>().not.toExtend<Contract>();
  });
});
