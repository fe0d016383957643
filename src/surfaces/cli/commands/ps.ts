import { Option } from "commander";
import type { TaskNode } from "../../../runtime/view/task-tree.ts";
import type { RowState } from "../../../runtime/ports/store.ts";
import { usageError } from "../cli-error.ts";
import { EXIT } from "../exit-code.ts";
import { waitText } from "../fact-text.ts";
import { durationText, plain, usageText } from "../measure.ts";
import { nearest } from "../nearest.ts";
import type { Errand } from "../../library/errand.ts";
import { RUN_STATUSES, type RunStatus, runJson, runStatus } from "../run-status.ts";
import { statusText } from "../style.ts";
import { type Column, tableLines } from "../table.ts";
import { type Register, examples } from "./command.ts";
import { wholeNumber } from "./option-values.ts";

const LIVE: readonly RowState[] = ["created", "ready", "running", "waiting", "awaiting", "paused"];
const PAGE = 200;
/** Columns of a terminal that has room for when a run was started beside how long it took. */
const WIDE = 110;

interface PsOptions {
  readonly all?: boolean;
  readonly children?: boolean;
  readonly state?: string;
  readonly limit: number;
}

export const psCommand: Register = (program, perform) => {
  program
    .command("ps")
    .summary("list runs")
    .description("List root runs that have not ended, newest first.")
    .option("-a, --all", "also those that have ended")
    .option("--children", "also runs that were delegated to")
    .addOption(new Option("--state <state>", `only these: ${RUN_STATUSES.join(", ")}`))
    .option("--limit <n>", "at most so many", wholeNumber("--limit"), 50)
    .addHelpText(
      "after",
      examples(
        ["errand ps", "live runs"],
        ["errand ps --all --limit 10", "the ten newest"],
        ["errand ps --state awaiting", "those that wait for a person"],
        ["errand ps --json | jq -r '.runs[].runId'", "for a script"],
      ),
    )
    .action(async (options: PsOptions, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out } = session;
          const wanted = statusOption(options.state);
          const runs = await listed(errand, options, wanted);
          if (out.json) {
            out.document({
              runs: runs.slice(0, options.limit).map(runJson),
              more: runs.length > options.limit,
            });
            return EXIT.done;
          }
          const shown = runs.slice(0, options.limit);
          if (shown.length === 0) {
            const all = options.all === true || wanted !== null;
            out.note(
              all ? "No such runs." : "No live runs. `errand ps --all` also lists those that have ended.",
            );
            return EXIT.done;
          }
          const now = errand.store.now();
          const started: Column<TaskNode> = {
            title: "STARTED",
            align: "right",
            text: (run) => `${durationText(now - run.createdAt)} ago`,
          };
          out.lines(
            tableLines(
              out.style,
              [
                { title: "RUN", text: (run) => run.runId },
                { title: "STATE", text: (run) => statusText(out.style, runStatus(run)) },
                { title: "AGENT", text: (run) => run.agent },
                {
                  title: "TIME",
                  align: "right",
                  text: (run) => durationText((run.endedAt ?? now) - run.createdAt),
                },
                ...(out.style.width < WIDE ? [] : [started]),
                { title: "NOTE", text: noteOf, paint: (text) => out.style.color.dim(text) },
              ],
              shown,
            ),
          );
          if (runs.length > options.limit) out.note(`There are more: raise --limit above ${options.limit}.`);
          return EXIT.done;
        }),
      ),
    );
};

function statusOption(text: string | undefined): RunStatus | "ended" | null {
  if (text === undefined) return null;
  if (text === "ended") return text;
  const found = RUN_STATUSES.find((status) => status === text);
  if (found !== undefined) return found;
  const meant = nearest(text, RUN_STATUSES);
  throw usageError(
    `There is no state ${JSON.stringify(text)}.`,
    `${meant === null ? "" : `Did you mean ${meant}? `}The states are ${RUN_STATUSES.join(", ")}, and ended for all of the last five.`,
  );
}

/** One more than the limit, so that it is known whether there are more. */
async function listed(
  errand: Errand,
  options: PsOptions,
  wanted: RunStatus | "ended" | null,
): Promise<readonly TaskNode[]> {
  const rowState = LIVE.find((state) => state === wanted);
  const states: readonly RowState[] =
    rowState !== undefined
      ? [rowState]
      : wanted !== null
        ? ["ended"]
        : options.all === true
          ? [...LIVE, "ended"]
          : LIVE;
  const found: TaskNode[] = [];
  for (let offset = 0; found.length <= options.limit; offset += PAGE) {
    const page = await errand.list({ states, rootsOnly: options.children !== true, limit: PAGE, offset });
    found.push(...page.filter((run) => wanted === null || wanted === "ended" || runStatus(run) === wanted));
    if (page.length < PAGE) break;
  }
  return found.slice(0, options.limit + 1);
}

function noteOf(run: TaskNode): string {
  const parts = [usageText(run.totalUsage)];
  if (run.attempt > 1) parts.push(`attempt ${run.attempt}`);
  const ended = run.end?.detail ?? null;
  if (ended !== null) parts.push(plain(ended));
  else if (run.wait !== null) parts.push(waitText(run.wait));
  return parts.filter((one) => one !== "").join(" · ");
}
