import * as fc from "fast-check";
import { expect, it } from "vitest";
import { NO_USAGE, type Usage, addUsage } from "./usage.ts";

const count = fc.nat(1_000_000);
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: count,
  outputTokens: count,
  modelCalls: count,
  unreportedModelCalls: count,
  toolCalls: count,
  costMicros: count,
});

it("adds up to the same in whatever order children end", () => {
  fc.assert(
    fc.property(fc.array(usage, { maxLength: 5 }), (parts) => {
      const sum = parts.reduce(addUsage, NO_USAGE);
      expect([...parts].reverse().reduce(addUsage, NO_USAGE)).toEqual(sum);
      expect(sum.inputTokens).toBe(parts.reduce((total, one) => total + one.inputTokens, 0));
      expect(addUsage(sum, NO_USAGE)).toEqual(sum);
      expect(addUsage(NO_USAGE, sum)).toEqual(sum);
    }),
  );
});
