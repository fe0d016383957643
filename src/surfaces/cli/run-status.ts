import type { TaskNode } from "../../runtime/view/task-tree.ts";
import type { RowState } from "../../runtime/ports/store.ts";

/** A Run's state as one word, in which an ended Run says how it ended. */
export type RunStatus =
  | Exclude<RowState, "ended">
  | "completed"
  | "failed"
  | "canceled"
  | "stopped"
  | "indeterminate"
  | "erased";

export const RUN_STATUSES = [
  "created",
  "ready",
  "running",
  "waiting",
  "awaiting",
  "paused",
  "completed",
  "failed",
  "canceled",
  "stopped",
  "indeterminate",
  "erased",
] as const satisfies readonly RunStatus[];

export function runStatus(node: Pick<TaskNode, "state" | "end">): RunStatus {
  if (node.state !== "ended") return node.state;
  const kind = node.end?.kind;
  return RUN_STATUSES.find((status) => status === kind) ?? "indeterminate";
}

/** A node as `--json` prints it: the library's own view with the one-word status beside it. */
export interface RunJson extends Omit<TaskNode, "children"> {
  readonly status: RunStatus;
}

export interface TreeJson extends RunJson {
  readonly children: readonly TreeJson[];
}

export function runJson(node: TaskNode): RunJson {
  const { children: _, ...own } = node;
  return { status: runStatus(node), ...own };
}

export function treeJson(node: TaskNode): TreeJson {
  return { ...runJson(node), children: node.children.map(treeJson) };
}

/** Every node of a tree, parents first. */
export function* nodesOf(tree: TaskNode): Generator<TaskNode, void, void> {
  yield tree;
  for (const child of tree.children) yield* nodesOf(child);
}

/** True when nothing in the tree can go on by itself: whoever is not ended awaits a person or a child that does. */
export function waitsForPeople(tree: TaskNode): boolean {
  let awaiting = false;
  for (const node of nodesOf(tree)) {
    if (node.state === "awaiting") awaiting = true;
    else if (node.state === "waiting" && node.wait?.on === "children") continue;
    else if (node.state !== "ended" && node.state !== "paused") return false;
  }
  return awaiting;
}
