import { createErrand } from "../src/surfaces/library/index.ts";
import { modelAgent, scriptedModel } from "../src/agents/model/index.ts";
import { defineTool } from "../src/surfaces/library/index.ts";
import { readRun } from "../src/runtime/run/read-run.ts";
import type { Figures } from "./figures.ts";
import { openMeasured } from "./measured-store.ts";

/**
 * A Run whose thread has `messages` messages: the rows, bytes and statements of its late commits beside its early ones,
 * which must not grow with the history, and the cold load, which does.
 */
export async function coldLoad(kind: "memory" | "sqlite", file: string, messages: number): Promise<Figures> {
  const measured = await openMeasured(kind, file);
  const look = defineTool({
    name: "look",
    description: "Answers with what it was given.",
    inputSchema: { type: "object", properties: { at: { type: "number" } } },
    replay: "safe",
    effect: "none",
    run: async (input) => input as { readonly at: number },
  });
  const turns = Math.floor(messages / 2);
  const marks: { readonly at: number; readonly count: typeof measured.count }[] = [];
  const talker = modelAgent({
    name: "talker",
    instructions: "Look until it is enough.",
    maxSteps: turns + 2,
    tools: [look],
    model: scriptedModel((turn) => {
      marks.push({ at: turn.step, count: { ...measured.count } });
      return turn.step < turns ? { calls: [{ tool: "look", input: { at: turn.step } }] } : "enough";
    }),
  });
  const errand = await createErrand({ store: measured.store, agents: [talker], worker: { warmRuns: 0 } });
  const run = await errand.start(talker, "Go.");
  await run.result();
  const between = (from: number, to: number, key: keyof typeof measured.count): number => {
    const first = marks[from];
    const last = marks[to];
    if (first === undefined || last === undefined) return 0;
    return Math.round(((last.count[key] - first.count[key]) / (to - from)) * 10) / 10;
  };
  const early = [5, 25] as const;
  const late = [turns - 25, turns - 5] as const;
  const times: number[] = [];
  for (let at = 0; at < 5; at++) {
    const start = performance.now();
    await readRun(measured.store, errand.tenant, run.runId);
    times.push(performance.now() - start);
  }
  await errand.close();
  return {
    case: `a history of ${messages} messages`,
    store: kind,
    rowsPerTurnEarly: between(...early, "rows"),
    rowsPerTurnLate: between(...late, "rows"),
    bytesPerTurnEarly: between(...early, "bytes"),
    bytesPerTurnLate: between(...late, "bytes"),
    statementsPerTurnEarly: kind === "sqlite" ? between(...early, "statements") : null,
    statementsPerTurnLate: kind === "sqlite" ? between(...late, "statements") : null,
    coldLoadMs: Math.round((times.sort((left, right) => left - right)[2] ?? 0) * 100) / 100,
  };
}
