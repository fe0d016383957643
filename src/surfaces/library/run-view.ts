import type { TaskNode } from "../../runtime/view/task-tree.ts";

export interface ResultOptions {
  /** Gives up waiting after so many milliseconds with WAIT_TIMEOUT; the Run goes on (K3.6). */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** A Run as one look shows it. */
export interface RunStatusView extends TaskNode {
  /** Why it is where it is, in one sentence. */
  readonly why: string;
}
