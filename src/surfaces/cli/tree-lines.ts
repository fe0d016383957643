import stringWidth from "string-width";
import type { OpenTicket } from "../../runtime/host/resume-ticket.ts";
import type { TaskNode } from "../../runtime/view/task-tree.ts";
import { cut, durationText, plain, usageText, wrap } from "./measure.ts";
import { type RunStatus, nodesOf, runStatus } from "./run-status.ts";
import { type Style, statusText } from "./style.ts";
import { answerCommand } from "./ticket-answer.ts";

/** Columns beyond which figures would stand too far from their row. */
const WIDEST = 110;
/** Columns that figures must leave, or some of them are left out. */
const LEAST_DETAIL = 2;

/** A task tree at one moment, and everything that decides how it looks. */
export interface TreePicture {
  readonly tree: TaskNode;
  /** Open tickets of the tree; each is shown below the Run that owns it. */
  readonly tickets: readonly OpenTicket[];
  /** What a Run is doing, or why it is not, by run id; one short sentence. */
  readonly notes: ReadonlyMap<string, string>;
  /** Milliseconds of the store's clock. */
  readonly now: number;
  readonly style: Style;
  /** Options that a command to copy must repeat, such as `--store`. */
  readonly scope: readonly string[];
  /** Show each Run's id. */
  readonly ids?: boolean;
  /** Fold subtrees that are done when the tree has more lines than this. */
  readonly maxLines?: number;
}

/** The tree as lines, a Run each, and below a Run what it waits for. Pure: the same picture gives the same lines. */
export function treeLines(picture: TreePicture): readonly string[] {
  const lines = draw(picture, false);
  return picture.maxLines !== undefined && lines.length > picture.maxLines ? draw(picture, true) : lines;
}

function draw(picture: TreePicture, folded: boolean): readonly string[] {
  const lines: string[] = [];
  drawNode(picture, picture.tree, "", "", folded, lines);
  return lines;
}

function drawNode(
  picture: TreePicture,
  node: TaskNode,
  branch: string,
  indent: string,
  folded: boolean,
  lines: string[],
): void {
  const { style, tickets } = picture;
  lines.push(nodeLine(picture, node, branch));
  const [fork, last, through] = style.unicode ? ["├─ ", "└─ ", "│  "] : ["|- ", "`- ", "|  "];
  const shown = folded ? node.children.filter((child) => !isQuiet(child)) : node.children;
  const hidden = node.children.length - shown.length;
  const bar = shown.length + (hidden > 0 ? 1 : 0) > 0 ? through : "   ";
  for (const ticket of tickets) {
    if (ticket.runId === node.runId) lines.push(...ticketLines(picture, ticket, `${indent}${bar}`));
  }
  for (const [at, child] of shown.entries()) {
    const isLast = at === shown.length - 1 && hidden === 0;
    drawNode(
      picture,
      child,
      `${indent}${isLast ? last : fork}`,
      `${indent}${isLast ? "   " : through}`,
      folded,
      lines,
    );
  }
  if (hidden > 0) {
    const runs = node.children.filter(isQuiet).reduce((sum, child) => sum + [...nodesOf(child)].length, 0);
    lines.push(style.color.dim(`${indent}${last}${runs} completed`));
  }
}

/** Completed with everything below it: nothing more will be seen here. */
function isQuiet(node: TaskNode): boolean {
  return [...nodesOf(node)].every((one) => runStatus(one) === "completed");
}

/** Sign, state, agent, what it does, and at the right edge its figures; the figures give way to the name, and the detail to both. */
function nodeLine(picture: TreePicture, node: TaskNode, branch: string): string {
  const { style, now } = picture;
  const { color, width } = style;
  const status = runStatus(node);
  const state = `${color.dim(branch)}${statusText(style, status)} `;
  const duration = durationText((node.endedAt ?? Math.max(now, node.createdAt)) - node.createdAt);
  const figures = [usageText(node.totalUsage), duration].filter((one) => one !== "").join(" · ");
  const detail = [
    picture.ids === true ? node.runId : "",
    node.attempt > 1 ? `attempt ${node.attempt}` : "",
    detailOf(picture, node, status),
  ]
    .filter((one) => one !== "")
    .join(" · ");
  if (width === Number.POSITIVE_INFINITY) {
    return `${state}${color.bold(node.agent)}${detail === "" ? "" : `  ${detail}`}  ${figures}`;
  }
  const columns = Math.min(width, WIDEST);
  const name = cut(node.agent, Math.max(1, columns - stringWidth(state)));
  const room = columns - stringWidth(state) - stringWidth(name);
  const right = [figures, duration, ""].find((one) => stringWidth(one) + LEAST_DETAIL <= room) ?? "";
  const left = cut(detail, room - stringWidth(right) - 4);
  const gap = room - stringWidth(left) - stringWidth(right) - (left === "" ? 0 : 2);
  const body = left === "" ? "" : `  ${paintDetail(style, status, left)}`;
  return `${state}${color.bold(name)}${body}${right === "" ? "" : " ".repeat(gap)}${color.dim(right)}`;
}

function paintDetail(style: Style, status: RunStatus, detail: string): string {
  const failed = status === "failed" || status === "stopped" || status === "indeterminate";
  return failed ? style.color.red(detail) : style.color.dim(detail);
}

function detailOf(picture: TreePicture, node: TaskNode, status: RunStatus): string {
  const note = picture.notes.get(node.runId);
  const ended = node.end?.detail ?? null;
  if (ended !== null) return plain(ended);
  if (note !== undefined && status !== "completed") return plain(note);
  return node.goal === null ? "" : plain(node.goal);
}

function ticketLines(picture: TreePicture, ticket: OpenTicket, indent: string): readonly string[] {
  const { style, scope } = picture;
  const { color, width } = style;
  const prompt = `${ticket.kind.replace("_", " ")}: ${plain(ticket.prompt)}`;
  const room = width - stringWidth(indent);
  const bar = color.dim(indent);
  const command = answerCommand(ticket, scope);
  return [
    ...wrap(prompt, room).map((line) => `${bar}${color.yellow(line)}`),
    // What is copied from a second line must not hold a branch of the tree.
    ...commandLines(command, room).map(
      (line, at) => `${at === 0 ? bar : indent.replace(/./gu, " ")}${color.bold(line)}`,
    ),
    ...(ticket.deadlineAt === null
      ? []
      : [`${bar}${color.dim(cut(deadlineText(ticket.deadlineAt - picture.now), room))}`]),
  ];
}

function deadlineText(leftMs: number): string {
  return leftMs > 0 ? `${durationText(leftMs)} left to answer` : "too late to answer";
}

/** A command that is too long for one line is broken as a shell reads on, so that it can still be copied. */
export function commandLines(command: string, room: number): readonly string[] {
  if (command.length <= room) return [command];
  const at = command.indexOf(" --");
  return at < 0 || at + 2 > room ? [command] : [`${command.slice(0, at)} \\`, `  ${command.slice(at + 1)}`];
}
