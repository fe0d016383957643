import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TOOL_CALL, anyJson } from "../../../test/support/domain-values.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { CallOutcome } from "../tool-batch/call-outcome.ts";
import { type ToolBatch, decideBatch, evolveBatch, publishedBatch } from "../tool-batch/tool-batch.ts";
import { EMPTY_HISTORY_DIGEST, type HistoryMessage, chainDigest, toolMessage } from "./history.ts";

const message: fc.Arbitrary<HistoryMessage> = fc.record({
  role: fc.constantFrom("system", "user", "assistant", "tool"),
  content: anyJson,
});
const digests = (messages: readonly HistoryMessage[]): readonly string[] => {
  let digest = EMPTY_HISTORY_DIGEST;
  return messages.map((one) => (digest = chainDigest(digest, one)));
};

describe("L9 the history's chain of digests", () => {
  it("names a prefix that no later message changes", () => {
    fc.assert(
      fc.property(fc.array(message), fc.array(message), (prefix, more) => {
        expect(digests([...prefix, ...more]).slice(0, prefix.length)).toEqual(digests(prefix));
      }),
    );
  });

  it("is the same for the same history only", () => {
    fc.assert(
      fc.property(fc.array(message, { minLength: 1 }), fc.array(message, { minLength: 1 }), (one, other) => {
        const same = canonicalJson(one as never) === canonicalJson(other as never);
        expect(digests(one).at(-1) === digests(other).at(-1)).toBe(same);
      }),
    );
  });

  it("does not see fields that a message has besides role and content", () => {
    const plain: HistoryMessage = { role: "user", content: "hello" };
    const timed = { ...plain, at: 17, attempt: 2 };
    expect(chainDigest(EMPTY_HISTORY_DIGEST, timed)).toBe(chainDigest(EMPTY_HISTORY_DIGEST, plain));
  });
});

describe("L9 the tool message of a batch", () => {
  const outcome: fc.Arbitrary<CallOutcome> = fc.oneof(
    anyJson.map((value): CallOutcome => ({ ok: true, value })),
    fc
      .record({ code: fc.string(), message: fc.string() })
      .map((error): CallOutcome => ({ ok: false, error })),
  );

  function answered(outcomes: readonly CallOutcome[], order: readonly number[]): ToolBatch {
    const requests = outcomes.map((_, index) => ({ ...TOOL_CALL, providerCallId: `p${index}` }));
    let batch = publishedBatch(3, "parallel", requests);
    for (const index of order) {
      const decision = decideBatch(batch, { type: "complete", index, outcome: outcomes[index]! });
      batch = decision.ok ? decision.facts.reduce(evolveBatch, batch) : batch;
    }
    return batch;
  }

  it("has exactly one answer a call, in call order, whatever the order of their ends", () => {
    const ends = fc
      .array(outcome, { minLength: 1, maxLength: 6 })
      .chain((outcomes) =>
        fc.tuple(
          fc.constant(outcomes),
          fc.shuffledSubarray([...outcomes.keys()], { minLength: outcomes.length }),
        ),
      );
    fc.assert(
      fc.property(ends, ([outcomes, order]) => {
        const said = toolMessage(answered(outcomes, order));
        expect(said).toEqual(toolMessage(answered(outcomes, [...outcomes.keys()])));
        const parts = said.content as readonly { readonly toolCallId: string }[];
        expect(parts.map((part) => part.toolCallId)).toEqual(outcomes.map((_, index) => `p${index}`));
      }),
    );
  });

  it.each<[string, CallOutcome, object]>([
    ["a text as text", { ok: true, value: "hi" }, { type: "text", value: "hi" }],
    ["any other value as JSON", { ok: true, value: { a: 1 } }, { type: "json", value: { a: 1 } }],
    [
      "an error with its code, message and details",
      { ok: false, error: { code: "child_failed", message: "no", details: [1] } },
      { type: "error-json", value: { error: "child_failed", message: "no", details: [1] } },
    ],
  ])("gives the model %s", (_, given, output) => {
    expect(toolMessage(answered([given], [0])).content).toMatchObject([
      { toolCallId: "p0", toolName: "send", output },
    ]);
  });
});
