import { type AgentDefinition, functionAgent } from "../src/surfaces/library/index.ts";

/** A parent that delegates one after the other to a child that answers at once. */
export function trivialAgents(
  delegationsPerParent: number,
  told: { returned?(token: number): void; resumed?(token: number): void } = {},
): AgentDefinition<number, number> {
  const number = { inputSchema: { type: "number" }, outputSchema: { type: "number" } } as const;
  const child = functionAgent({
    ...number,
    name: "child",
    version: "1",
    run: async (_ctx, token: number) => {
      told.returned?.(token);
      return token;
    },
  });
  return functionAgent({
    ...number,
    name: "parent",
    version: "1",
    roster: [{ agent: child }],
    run: async (ctx, first: number) => {
      for (let at = 0; at < delegationsPerParent; at++) {
        await ctx.run(child, first + at);
        told.resumed?.(first + at);
      }
      return first;
    },
  }) as AgentDefinition<number, number>;
}
