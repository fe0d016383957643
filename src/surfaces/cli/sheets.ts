import type { Effect } from "../../domain/effect/effect-ledger.ts";
import type { Publication } from "../../runtime/catalog/publication.ts";
import type { OpenTicket } from "../../runtime/host/resume-ticket.ts";
import type { DelegationRow } from "../../runtime/ports/store.ts";
import type { CallDetail, RunDetail } from "../../runtime/view/run-detail.ts";
import type { TaskNode } from "../../runtime/view/task-tree.ts";
import type { RunStatusView } from "../library/run-view.ts";
import { counted, endText, outcomeText, valueText } from "./fact-text.ts";
import { costText, countText, cut, durationText, plain } from "./measure.ts";
import { runStatus } from "./run-status.ts";
import { type Style, statusText } from "./style.ts";
import { answerCommand } from "./ticket-answer.ts";
import { commandLines } from "./tree-lines.ts";

/*
 * What `errand show` prints for people: a title, named lines, and sections. On a terminal a line is cut at its width;
 * `--json` has everything whole.
 */

export interface RunView {
  readonly status: RunStatusView;
  readonly detail: RunDetail;
  readonly effects: readonly Effect[];
  readonly tickets: readonly OpenTicket[];
  readonly tree: TaskNode;
  readonly now: number;
}

export function runSheet(view: RunView, style: Style, scope: readonly string[]): readonly string[] {
  const { status, detail, effects, tickets, tree, now } = view;
  const { color } = style;
  const own = usageLine(status.usage);
  const withChildren = usageLine(tree.totalUsage);
  const lived = durationText((status.endedAt ?? now) - status.createdAt);
  const lines = [
    `${statusText(style, runStatus(status))} ${color.bold(status.agent)} ${status.runId}`,
    ...named(style, [
      ["why", status.state === "ended" && status.end?.kind !== "erased" ? "" : status.why],
      ["end", endLine(detail)],
      ["time", `${lived}, started ${new Date(status.createdAt).toISOString()}`],
      ["goal", status.goal ?? ""],
      ["input", status.end?.kind === "erased" ? "" : valueText(detail.input, LONGEST)],
      ["agent", status.publication],
      ["thread", status.threadId],
      ["parent", status.parentRunId ?? ""],
      ["root", status.parentRunId === null ? "" : status.rootRunId],
      ["delegation", status.delegationId ?? ""],
      ["user", detail.user ?? ""],
      ["usage", own],
      ["with children", withChildren === own ? "" : withChildren],
    ]),
  ];
  const { contract } = detail;
  if (contract !== null) {
    lines.push(
      title(style, `contract v${contract.version}`),
      ...named(style, [
        ["goal", contract.goal],
        ["input", valueText(contract.inputSchema as never, LONGEST)],
        ["output", valueText(contract.outputSchema as never, LONGEST)],
      ]),
    );
  }
  if (detail.attempts.length > 1 || detail.attempts.some((one) => one.failed !== null)) {
    lines.push(title(style, "attempts"));
    for (const { attempt, startedAt, failed } of detail.attempts) {
      const after = failed === null ? "" : ` failed after ${durationText(failed.at - startedAt)}: `;
      const error = failed === null ? "" : `${failed.error.code}: ${plain(failed.error.message)}`;
      lines.push(fit(style, `  ${attempt}${after}${color.red(error)}`));
    }
  }
  if (detail.calls.length > 0)
    lines.push(title(style, "calls"), ...detail.calls.flatMap((one) => callLines(one, style)));
  if (effects.length > 0) {
    lines.push(title(style, "effects"));
    for (const { key, tool, effectClass, executions, outcome } of effects) {
      const text = `${tool} (${effectClass}) ${outcome}, begun ${counted(executions, "time")}`;
      lines.push(fit(style, `  ${text}  ${color.dim(key)}`));
    }
  }
  if (tickets.length > 0)
    lines.push(title(style, "tickets"), ...tickets.flatMap((one) => ticketLines(one, style, scope)));
  if (detail.requests.length > 0) {
    lines.push(title(style, "requests"));
    for (const { request, at, reason, by } of detail.requests) {
      const why = [by === null ? "" : `by ${by}`, reason ?? ""].filter((one) => one !== "").join(": ");
      lines.push(fit(style, `  ${new Date(at).toISOString()} ${request} ${plain(why)}`));
    }
  }
  return lines;
}

export function delegationSheet(
  row: DelegationRow,
  child: TaskNode | null,
  detail: RunDetail | null,
  style: Style,
  now: number,
): readonly string[] {
  const { color } = style;
  const childText =
    child === null
      ? `${row.childRunId} (its record is missing)`
      : `${row.childRunId} ${runStatus(child)} ${durationText((child.endedAt ?? now) - child.createdAt)}`;
  return [
    `${color.bold(`delegation to ${row.target}`)} ${row.delegationId}`,
    ...named(style, [
      ["status", row.status.replace("_", " ")],
      ["parent", `${row.parentRunId}, call ${row.step}.${row.index}`],
      ["child", childText],
      ["end", endLine(detail)],
      ["goal", detail?.contract?.goal ?? ""],
      ["input", detail === null ? "" : valueText(detail.input, LONGEST)],
      ["contract", `v${row.contractVersion} ${row.contractDigest}`],
    ]),
  ];
}

export function publicationSheet(
  publication: Publication,
  publishedAt: number,
  workers: readonly string[],
  style: Style,
): readonly string[] {
  const { color } = style;
  const roster = Object.values(publication.roster).map((one) => one.ref);
  return [
    `${color.bold(publication.name)} ${publication.ref}`,
    ...named(style, [
      ["kind", publication.kind],
      ["description", publication.description],
      ["published", new Date(publishedAt).toISOString()],
      ["workers", workers.length === 0 ? "none is alive that carries it" : workers.join(", ")],
      ["may ask", publication.terminalOnly ? "nobody: it always ends by itself" : "a person"],
      ["roster", roster.join(", ")],
      ["limits", valueText(publication.limits as never, LONGEST)],
      ["input", valueText(publication.inputSchema as never, LONGEST)],
      ["output", valueText(publication.outputSchema as never, LONGEST)],
    ]),
  ];
}

const LONGEST = 2_000;
const NAME_WIDTH = 14;

function named(style: Style, pairs: readonly (readonly [name: string, text: string])[]): readonly string[] {
  return pairs
    .filter(([, text]) => text !== "")
    .map(([name, text]) => fit(style, `  ${style.color.dim(name.padEnd(NAME_WIDTH))}${plain(text)}`));
}

function endLine(detail: RunDetail | null): string {
  const end = detail?.end ?? null;
  return end === null ? "" : endText(end);
}

function callLines(call: CallDetail, style: Style): readonly string[] {
  const { color } = style;
  const input = call.kind === "recorded" ? "" : `(${valueText(call.input, LONGEST)})`;
  const again = call.executions > 1 ? `, begun ${counted(call.executions, "time")}` : "";
  const took = call.endedAt === null ? "" : color.dim(` ${durationText(call.endedAt - call.publishedAt)}`);
  const answer =
    call.outcome !== null
      ? outcomeText(call.outcome)
      : call.reason !== null
        ? `indeterminate: ${call.reason}`
        : call.phase;
  const child =
    call.delegation === null ? [] : [fit(style, color.dim(`       ${call.delegation.childRunId}`))];
  const bad = call.outcome?.ok === false || call.phase === "indeterminate";
  return [
    fit(style, `  ${call.call.padEnd(4)} ${color.bold(call.tool)}${input}${took}`),
    ...child,
    fit(style, `       ${bad ? color.red(answer + again) : answer + again}`),
  ];
}

function ticketLines(ticket: OpenTicket, style: Style, scope: readonly string[]): readonly string[] {
  const head = fit(style, `  ${ticket.ticketId} ${ticket.status}, ${ticket.kind}: ${plain(ticket.prompt)}`);
  if (ticket.status !== "open") return [head];
  return [head, ...commandLines(answerCommand(ticket, scope), style.width - 4).map((line) => `    ${line}`)];
}

function usageLine(usage: TaskNode["usage"]): string {
  const { inputTokens, outputTokens, modelCalls, unreportedModelCalls, toolCalls, costMicros } = usage;
  return [
    modelCalls === 0 ? "" : counted(modelCalls, "model call"),
    modelCalls === 0 ? "" : `${countText(inputTokens)} tokens in, ${countText(outputTokens)} out`,
    unreportedModelCalls === 0 ? "" : `${unreportedModelCalls} without a count`,
    toolCalls === 0 ? "" : counted(toolCalls, "tool call"),
    costMicros === 0 ? "" : `cost ${costText(costMicros)}`,
  ]
    .filter((one) => one !== "")
    .join(", ");
}

function title(style: Style, text: string): string {
  return `  ${style.color.bold(text)}`;
}

/** Cuts a line, colour and all, to the terminal's width. */
function fit(style: Style, line: string): string {
  return cut(line, style.width);
}
