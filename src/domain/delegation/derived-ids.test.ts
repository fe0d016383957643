import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDelegationId, parseRunId, parseThreadId } from "../id.ts";
import { deriveTicketId } from "../ticket/ticket.ts";
import { derivedIds } from "./derived-ids.ts";

const run = fc.stringMatching(/^[a-z0-9]{8,32}$/).map((text) => parseRunId(`run_${text}`));
const call = fc.record({ step: fc.integer({ min: 1 }), index: fc.nat() });

describe("L12 derived ids", () => {
  it("are a function of parent and call alone, of fixed length, and are what the parsers accept", () => {
    fc.assert(
      fc.property(run, call, (parent, key) => {
        const ids = derivedIds(parent, key);
        expect(derivedIds(parent, { ...key })).toEqual(ids);
        expect(Object.values(ids).map((id) => id.length)).toEqual([36, 36, 36]);
        expect(parseDelegationId(ids.delegationId)).toBe(ids.delegationId);
        expect(parseRunId(ids.childRunId)).toBe(ids.childRunId);
        expect(parseThreadId(ids.childThreadId)).toBe(ids.childThreadId);
      }),
    );
  });

  it("differ for every other parent, step and index, at any depth", () => {
    const seen = new Set<string>();
    let parent = parseRunId("run_00000001");
    for (let depth = 0; depth < 10; depth++) {
      for (let step = 1; step <= 40; step++) {
        for (let index = 0; index < 25; index++) {
          const ids = derivedIds(parent, { step, index });
          seen
            .add(ids.delegationId)
            .add(ids.childRunId)
            .add(deriveTicketId(parent, { step, index }, 0));
        }
      }
      parent = derivedIds(parent, { step: 1, index: 0 }).childRunId;
    }
    expect(seen.size).toBe(10 * 40 * 25 * 3);
  });

  it("are not confused by digits that move from the step to the index", () => {
    const parent = parseRunId("run_00000001");
    const texts = [
      [1, 11],
      [11, 1],
      [111, 0],
      [1, 110],
    ].map(([step, index]) => derivedIds(parent, { step: step!, index: index! }).delegationId);
    expect(new Set(texts).size).toBe(4);
  });
});
