import type { RunHeader } from "../../domain/run/run-header.ts";
import type { TenantId } from "../../domain/id.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import type { CallRequest } from "../../domain/tool-batch/call-request.ts";
import type { LiveDelta } from "../ports/live-bus.ts";
import type { Tool, ToolCallContext } from "../ports/tool.ts";

export interface Launch {
  readonly step: number;
  readonly index: number;
  readonly request: CallRequest;
  readonly tool: Tool;
  readonly execution: number;
  /** Find the work that an earlier execution began, instead of beginning it. */
  readonly reconnect: boolean;
}

/** The tool calls of one Run that this process is executing right now, and their outcomes until those are committed. */
export class ToolExecutions {
  /** Outcomes that no commit has recorded yet, by call index of the open batch. */
  readonly finished = new Map<number, CallOutcome>();
  readonly #running = new Map<number, AbortController>();
  readonly #settled: () => void;

  /** @param settled told after every outcome */
  constructor(settled: () => void) {
    this.#settled = settled;
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  has(index: number): boolean {
    return this.#running.has(index) || this.finished.has(index);
  }

  launch(
    launch: Launch,
    run: { readonly tenant: TenantId; readonly header: RunHeader; emit(delta: LiveDelta): void },
  ): void {
    const { index, step, tool, request } = launch;
    const control = new AbortController();
    this.#running.set(index, control);
    const { header } = run;
    const context: ToolCallContext = {
      tenant: run.tenant,
      runId: header.runId,
      rootRunId: header.rootRunId,
      agent: header.agent,
      effectKey: `${header.runId}:${step}.${index}`,
      execution: launch.execution,
      user: header.user,
      progress: (message, fraction) =>
        run.emit({ kind: "progress", tool: tool.name, message, fraction: fraction ?? null }),
    };
    void this.#execute(launch, tool, request, context, control.signal).then((outcome) => {
      if (this.#running.get(index) !== control) return;
      this.#running.delete(index);
      if (outcome !== undefined) this.finished.set(index, outcome);
      this.#settled();
    });
  }

  /** Asks every running tool to stop; each still settles in its own time. */
  abort(reason: unknown): void {
    for (const control of this.#running.values()) control.abort(reason);
  }

  /** Forgets what still runs: its late outcome is dropped, its call is sealed by whoever ends the Run. */
  forget(): void {
    this.#running.clear();
  }

  /** Undefined when the tool stopped because it was told to: its outcome is unknown, not an error. */
  async #execute(
    launch: Launch,
    tool: Tool,
    request: CallRequest,
    context: ToolCallContext,
    signal: AbortSignal,
  ): Promise<CallOutcome | undefined> {
    try {
      const parsed = tool.parse(request.input);
      if (!parsed.ok) return failed("invalid_input", parsed.message);
      return launch.reconnect && tool.reconnect !== undefined
        ? await tool.reconnect(parsed.value, context, signal)
        : await tool.run(parsed.value, context, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      return failed("tool_error", error instanceof Error ? error.message : String(error));
    }
  }
}
