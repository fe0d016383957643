import { expect, test } from "vitest";
import { z } from "zod";
import { functionAgent } from "../../src/agents/function/function-agent.ts";
import { createMemoryStore } from "../../src/stores/memory/index.ts";
import { createErrand } from "../../src/surfaces/library/create-errand.ts";

test("a parent delegates to a child and gets its result", async () => {
  const child = functionAgent({
    name: "double",
    version: "1",
    input: z.number(),
    output: z.number(),
    run: async (_ctx, n) => n * 2,
  });
  const parent = functionAgent({
    name: "parent",
    version: "1",
    input: z.number(),
    output: z.number(),
    roster: [{ agent: child }],
    run: async (ctx, n) => {
      const a = await ctx.run(child, n);
      const b = await ctx.run(child, a);
      return b;
    },
  });
  await using errand = await createErrand({ store: createMemoryStore(), agents: [parent] });
  const run = await errand.start(parent, 5);
  expect(await run.result({ timeoutMs: 3000 })).toBe(20);
  const tree = await run.tree();
  expect(tree.children.map((one) => [one.agent, one.state, one.end?.kind])).toEqual([
    ["double", "ended", "completed"],
    ["double", "ended", "completed"],
  ]);
});
