import type { Json } from "../../rules/json.ts";
import type { RunId, ThreadId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { TaskNode } from "../../runtime/view/task-tree.ts";
import type { ControlOptions } from "../../runtime/host/control-run.ts";
import type { ResultOptions, RunStatusView } from "./run-view.ts";
import type { StreamEvent, StreamOptions } from "./stream.ts";

/** What a handle asks of the Errand that it came from. */
interface RunDoor {
  result<Output>(runId: RunId, options?: ResultOptions): Promise<Output>;
  end(runId: RunId, options?: ResultOptions): Promise<RunEnd>;
  status(runId: RunId): Promise<RunStatusView>;
  tree(runId: RunId): Promise<TaskNode>;
  stream(runId: RunId, options?: StreamOptions): AsyncGenerator<StreamEvent, void, void>;
  cancel(
    runId: RunId,
    options?: ControlOptions,
  ): Promise<{ readonly recorded: boolean; readonly ended: boolean }>;
}

/** One Run, held by its starter. It is only an id and a door: losing it loses nothing. */
export class RunHandle<Output = Json> {
  readonly #errand: RunDoor;
  readonly runId: RunId;
  /** Null for a handle made from an id alone. */
  readonly threadId: ThreadId | null;

  constructor(errand: RunDoor, runId: RunId, threadId: ThreadId | null) {
    this.#errand = errand;
    this.runId = runId;
    this.threadId = threadId;
  }

  result(options?: ResultOptions): Promise<Output> {
    return this.#errand.result<Output>(this.runId, options);
  }

  end(options?: ResultOptions): Promise<RunEnd> {
    return this.#errand.end(this.runId, options);
  }

  status(): Promise<RunStatusView> {
    return this.#errand.status(this.runId);
  }

  tree(): Promise<TaskNode> {
    return this.#errand.tree(this.runId);
  }

  stream(options?: StreamOptions): AsyncGenerator<StreamEvent, void, void> {
    return this.#errand.stream(this.runId, options);
  }

  cancel(options?: ControlOptions): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
    return this.#errand.cancel(this.runId, options);
  }

  toString(): string {
    return this.runId;
  }
}
