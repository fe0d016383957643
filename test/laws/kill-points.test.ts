import { expect, test } from "vitest";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import { scriptedModel } from "../../src/agents/model/scripted-model.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn } from "../support/agents.ts";
import { brokenConnection } from "../support/hooked-store.ts";
import { Outside } from "../support/outside.ts";
import { type World, onEachStore } from "../support/world.ts";

/** A model that delegates to two functions at once and then to one that asks; all tools may be repeated. */
function family(outside: Outside) {
  const mail = outside.tool("mail", { replay: "idempotent", effect: "idempotent" });
  const leaf = fn("leaf", (ctx, id) => ctx.tool(mail, { id: id as string }), { tools: [mail] });
  const asker = fn(
    "asker",
    async (ctx) => [await ctx.ask({ prompt: "Which?" }), await ctx.tool(mail, { id: "c" })],
    {
      mayAsk: true,
      tools: [mail],
    },
  );
  const run = (agent: string, input: string) => ({
    tool: "agent_run",
    input: { agent, goal: `do ${input}`, input },
  });
  const model = scriptedModel([
    { calls: [run("leaf", "a"), run("leaf", "b")] },
    { calls: [run("asker", "c"), { tool: "mail", input: { id: "d" } }] },
    ({ toolResults }) => toolResults.map((one) => JSON.stringify(one.value)).join(" "),
  ]);
  return modelAgent({ name: "lead", instructions: "Lead.", model, tools: [mail], roster: [leaf, asker] });
}

type Point = { readonly at: number; readonly side: "before" | "after" };

/** Plays the family through with a worker that dies at one commit; answers what is left, and how many commits there were. */
async function played(world: World, point: Point | null) {
  const outside = new Outside();
  const agents = [family(outside)];
  const host = await world.errand({ agents, worker: false });
  let commits = 0;
  const worker: Errand = await world.errand({
    agents,
    hooks: {
      commit: (commit) => {
        if (commit.lane === null) return;
        commits += 1;
        if (point?.side === "before" && commits === point.at) die();
      },
      committed: (commit) => {
        if (commit.lane !== null && point?.side === "after" && commits === point.at) die();
      },
    },
  });
  const die = (): never => {
    worker.worker?.kill();
    throw brokenConnection();
  };
  const run = await host.start(agents[0]!, "go", { key: "the same work" });
  await world.errand({ agents });
  await world.passUntil(async () => (await host.tickets()).length === 1);
  await host.resume(run.runId, "this");
  await world.passUntil(async () => (await run.status()).state === "ended");
  const tree = await run.tree();
  const histories = await Promise.all(
    [run.runId, ...tree.children.map((one) => one.runId)].map((id) => host.history(id)),
  );
  return {
    commits,
    end: await host.end(run.runId),
    children: tree.children.map((one) => [one.agent, one.runId, one.end?.kind]),
    histories: JSON.stringify(histories),
    effects: [...new Set(outside.keys)].toSorted((a, b) => (a < b ? -1 : 1)),
    repeats: outside.done.length - new Set(outside.done).size,
  };
}

onEachStore("Kill points", (open) => {
  test("L9 L10 L14 L15 L33 a worker killed before or after any one commit: the same tree, ends and histories, byte for byte", async () => {
    await using calm = await open();
    const { commits, repeats, ...expected } = await played(calm, null);
    expect(expected.end).toEqual({ kind: "completed", output: '["this","mail c"] "mail d"' });
    expect(expected.effects).toHaveLength(4);
    expect([commits > 10, repeats]).toEqual([true, 0]);
    for (let at = 1; at <= commits; at++) {
      for (const side of ["before", "after"] as const) {
        await using world = await open();
        const { commits: _, repeats: repeated, ...left } = await played(world, { at, side });
        expect({ at, side, ...left }).toEqual({ at, side, ...expected });
        // What was under way when the worker died is repeated under its key; nothing else is.
        expect(repeated).toBeLessThanOrEqual(2);
      }
    }
  }, 60_000);
});
