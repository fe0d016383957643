import { DEFAULT_LIMITS } from "../../src/domain/delegation/limits.ts";
import type { PublicationRef, RunId, ThreadId } from "../../src/domain/id.ts";
import type { CallOutcome } from "../../src/domain/tool-batch/call-outcome.ts";
import type { Json } from "../../src/rules/json.ts";
import type { CarrierSession, Move, MoveContext, WantedCall } from "../../src/runtime/ports/carrier.ts";
import type { RecordedCall } from "../../src/runtime/ports/journal.ts";
import type { LiveDelta } from "../../src/runtime/ports/live-bus.ts";
import type { Tool } from "../../src/runtime/ports/tool.ts";

export type TypedTool<In, Out> = Tool & { readonly types?: { readonly input: In; readonly output: Out } };
/** Answers with the number it was given. */
export const echo: TypedTool<{ n: number }, number> = {
  name: "echo",
  description: "Echoes.",
  inputSchema: { type: "object" },
  replay: "safe",
  effect: "none",
  parallel: true,
  timeoutMs: 1_000,
  maxExecutions: 3,
  mayNeedApproval: false,
  approval: () => false,
  approvalPrompt: () => "",
  parse: (value) => ({ ok: true, value }),
  run: async () => ({ ok: true, value: null }),
};
export const n = (call: WantedCall): number => (call.input as { n: number }).n;
export const echoed = (call: WantedCall): CallOutcome => ({ ok: true, value: n(call) });

/** A Run as a carrier sees it, with the journal that a runtime would keep. */
export class Recorder {
  readonly journal: RecordedCall[] = [];
  readonly warnings: string[] = [];
  readonly deltas: LiveDelta[] = [];
  readonly batches: string[][] = [];
  input: Json = null;
  now = 1_000;
  #step = 0;

  context(attempt = 1): MoveContext {
    const runId = "run_00000001" as RunId;
    return {
      header: {
        runId,
        threadId: "thr_00000001" as ThreadId,
        rootRunId: runId,
        origin: null,
        depth: 0,
        lineage: ["f"],
        agent: "f",
        publication: "f@0000000000000000" as PublicationRef,
        input: this.input,
        outputSchema: true,
        limits: DEFAULT_LIMITS,
        treeRuns: 1,
        priority: 0,
        user: "ada",
      },
      attempt,
      input: this.input,
      history: [],
      journal: this.journal,
      note: null,
      answer: undefined,
      stepsTaken: this.#step,
      now: this.now,
      emit: (delta) => this.deltas.push(delta),
      warn: (message) => this.warnings.push(message),
    };
  }

  record(calls: readonly WantedCall[], answer: (call: WantedCall) => CallOutcome): void {
    const step = ++this.#step;
    this.batches.push(calls.map((call) => call.site ?? ""));
    for (const [index, call] of calls.entries()) {
      const { tool, input, site = null } = call;
      this.journal.push({ step, index, site, tool, input, answer: call.answer ?? answer(call) });
    }
  }

  /** Carries on until something else than calls comes, or `batches` more were answered. */
  async play(session: CarrierSession, answer = echoed, batches = Infinity): Promise<Move> {
    for (let left = batches; ; left--) {
      const move = await session.next(this.context(), new AbortController().signal);
      if (move.kind !== "calls" || left === 0) return move;
      this.record(move.calls, answer);
    }
  }
}
