import { modelAgent } from "errand/model";
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { z } from "zod";
import { type HistoryMessage, toolMessage } from "../../src/domain/thread/history.ts";
import { type CallOutcome, failed } from "../../src/domain/tool-batch/call-outcome.ts";
import { publishedBatch } from "../../src/domain/tool-batch/tool-batch.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { Move, WantedCall } from "../../src/runtime/ports/carrier.ts";
import type { LiveDelta } from "../../src/runtime/ports/live-bus.ts";
import { watchedContext } from "../../src/testing/move-context.ts";
import { defineTool } from "../../src/tools/define-tool.ts";

/** Given to every provider package; it must turn up nowhere. */
export const SECRET = "sk-test-0123456789abcdef";

const readFile = defineTool({
  name: "read_file",
  description: "Reads a file.",
  input: z.object({ path: z.string() }),
  replay: "safe",
  effect: "read_only",
  run: ({ path }) => `content of ${path}`,
});

export function agentOn(model: LanguageModelV3): AgentDefinition {
  return modelAgent({
    name: "reader",
    instructions: "You read files.",
    model,
    tools: [readFile],
    maxOutputTokens: 1000,
    price: { inputPerMillionTokens: 1, outputPerMillionTokens: 10 },
  });
}

export interface Driven {
  readonly moves: readonly Move[];
  readonly history: readonly HistoryMessage[];
  readonly deltas: readonly LiveDelta[];
}

/** Moves until the agent completes or fails for good, or has failed `attempts` times. */
export async function drive(agent: AgentDefinition, input: string, attempts = 3): Promise<Driven> {
  const session = agent.open();
  const moves: Move[] = [];
  const base = watchedContext(agent, { input, now: Date.now() });
  const history = [...session.prompt(base)];
  for (let step = 0, failures = 0; step < 10 && failures < attempts; step += 1) {
    const move = await session.next(
      { ...base, history: [...history], stepsTaken: step },
      new AbortController().signal,
    );
    moves.push(move);
    if (move.kind === "fail") failures += 1;
    if (move.kind === "calls") {
      if (move.message !== null) history.push(move.message);
      const answered = move.calls.map(answer);
      const requests = move.calls.map((call, index) => ({
        kind: "recorded" as const,
        ...call,
        replay: "safe" as const,
        effect: "none" as const,
        answer: answered[index] as CallOutcome,
      }));
      history.push(toolMessage(publishedBatch(step, "parallel", requests)));
    } else if (move.kind !== "fail" || !move.retryable) break;
  }
  session.dispose();
  return { moves, history, deltas: base.deltas };
}

function answer(call: WantedCall): CallOutcome {
  if (call.answer !== undefined) return call.answer;
  const parsed = readFile.parse(call.input);
  if (!parsed.ok) return failed("invalid_input", parsed.message);
  return { ok: true, value: `content of ${(parsed.value as { readonly path: string }).path}` };
}
