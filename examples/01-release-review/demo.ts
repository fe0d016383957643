import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Errand, ErrandError, type RunFact, type RunHandle } from "errand";
import type { followTree } from "../../src/surfaces/cli/follow-tree.ts";
import type { createLiveTree } from "../../src/surfaces/cli/live-tree.ts";
import type { Style, styleOf } from "../../src/surfaces/cli/style.ts";
import type { ReviewResult } from "./findings.ts";
import { ModelChoiceError, chooseModel } from "./model-choice.ts";
import { HERE, type Meeting, type ReviewOptions, type Reviewed, reviewRelease } from "./review.ts";
import { ReleaseInputError } from "./tools/release-input-error.ts";
import { verdictText } from "./verdict.ts";

/** The live tree of the `errand` command. */
export interface TreeView {
  readonly followTree: typeof followTree;
  readonly createLiveTree: typeof createLiveTree;
  readonly styleOf: typeof styleOf;
}

const HELP = `Reviews a release: which clients the new API breaks, whether the migration keeps all data, which screens changed.

npm run demo -- [options]
  --before <folder>  the version that runs now (default: the one that comes with the example)
  --after <folder>   the version to release
  --out <folder>     where review and evidence go
  --store <file>     the SQLite file that remembers everything
  --again            review once more what has been reviewed already
  --slow             take your time, to watch
  --model <name>     who plans: scripted, openai/<model>, anthropic/<model>; by default the provider whose key is set
`;

/** Columns beyond which text is hard to read. */
const WIDEST = 100;

/** One call of the demo; returns the exit status. */
export async function demo(args: readonly string[], view: TreeView): Promise<number> {
  try {
    const options = await readOptions(args);
    if (options === null) {
      process.stdout.write(HELP);
      return 0;
    }
    return await run(options, view);
  } catch (error) {
    if (!isForPeople(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

/** An error whose message says what to do; anything else is a defect and keeps its stack. */
function isForPeople(error: unknown): error is Error {
  if (error instanceof ReleaseInputError || error instanceof ModelChoiceError) return true;
  return ErrandError.is(error) || (error instanceof TypeError && "code" in error);
}

async function readOptions(args: readonly string[]): Promise<ReviewOptions | null> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      before: { type: "string", default: join(HERE, "before") },
      after: { type: "string", default: join(HERE, "after") },
      out: { type: "string", default: join(HERE, "out") },
      store: { type: "string", default: join(HERE, ".errand/errand.db") },
      model: { type: "string" },
      again: { type: "boolean", default: false },
      slow: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  // npm runs scripts in the package's folder; paths are meant from where the user stands.
  const from = process.env["INIT_CWD"] ?? process.cwd();
  return {
    before: resolve(from, values.before),
    after: resolve(from, values.after),
    out: resolve(from, values.out),
    store: resolve(from, values.store),
    model: await chooseModel(values.model ?? process.env["ERRAND_MODEL"], process.env),
    again: values.again,
    paceMs: values.slow ? 45 : 0,
  };
}

async function run(options: ReviewOptions, view: TreeView): Promise<number> {
  const style = view.styleOf(process.stderr, process.env, undefined);
  const interrupt = new AbortController();
  const onInterrupt = (): void => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort(new Error("interrupted"));
  };
  process.on("SIGINT", onInterrupt).on("SIGTERM", onInterrupt);
  say(introduction(options, style));
  let runId = "";
  const troubles = new Set<string>();
  const reviewed = await reviewRelease(options, {
    watch: async (errand, handle, meeting) => {
      runId = handle.runId;
      say(meetingText(meeting, handle.runId, style));
      await watch(errand, handle, view, style, interrupt.signal);
    },
    trouble: (message) => {
      if (!troubles.has(message)) say(style.color.yellow(message));
      troubles.add(message);
    },
  });
  if (reviewed === null) {
    say(`\nStopped in the middle. Nothing is lost: the same command goes on with ${runId}.`);
    return 130;
  }
  process.stdout.write(conclusion(options, reviewed, view.styleOf(process.stdout, process.env, undefined)));
  return 0;
}

async function watch(
  errand: Errand,
  handle: RunHandle<ReviewResult>,
  view: TreeView,
  style: Style,
  signal: AbortSignal,
): Promise<void> {
  if (process.stderr.isTTY !== true) {
    await view.followTree(errand, handle.runId, {
      signal,
      onFrame: () => undefined,
      onEvent: (event) => {
        if (event.kind !== "fact") return;
        const text = stepText(event.fact);
        if (text !== null) say(`  ${event.agent}: ${text}`);
      },
    });
    return;
  }
  const live = await view.createLiveTree(process.stderr, style, []);
  try {
    await view.followTree(errand, handle.runId, { signal, onFrame: (frame) => live.draw(frame) });
  } finally {
    live.done();
  }
}

/** What is worth a line where no tree can be drawn. */
function stepText(fact: RunFact): string | null {
  if (fact.type === "attempt_started") return "started";
  if (fact.type === "step_published") return `calls ${fact.calls.map(({ tool }) => tool).join(", ")}`;
  return fact.type === "run_ended" ? fact.end.kind : null;
}

function introduction({ before, after, model }: ReviewOptions, { color }: Style): string {
  const planner =
    model.model === null
      ? "Planned by the example's own script; set OPENAI_API_KEY or ANTHROPIC_API_KEY for a model."
      : `Planned by ${model.name}.`;
  return [
    `${color.bold("Release review")}  ${shown(before)} → ${shown(after)}`,
    color.dim(planner),
    color.dim(
      `Stop it whenever you like, with Ctrl-C or \`kill -9 ${process.pid}\`: the same command goes on with the same tree.`,
    ),
    "",
  ].join("\n");
}

function meetingText(meeting: Meeting, runId: string, { color }: Style): string {
  switch (meeting.kind) {
    case "started":
      return color.dim(`Started ${runId}`);
    case "goes_on":
      return color.yellow(
        `Going on with ${runId}, begun ${agoText(meeting.sinceMs)} (a killed process is taken over within 3 s)`,
      );
    case "done":
      return color.dim(
        `This release was reviewed ${agoText(meeting.sinceMs)}, by ${runId}; --again reviews it once more.`,
      );
    default:
      return meeting satisfies never;
  }
}

function conclusion(options: ReviewOptions, { runId, result, review }: Reviewed, style: Style): string {
  const { color, width } = style;
  const paint = { release: color.green, release_with_care: color.yellow, hold: color.red }[result.verdict];
  const scope =
    options.store === join(HERE, ".errand/errand.db")
      ? ["--config", shown(join(HERE, "errand.config.ts"))]
      : ["--store", shown(options.store)];
  const command = (name: string): string => ["npx", "errand", name, runId, ...scope].join(" ");
  return [
    "",
    color.bold(paint(verdictText(result.verdict))),
    ...wrapped(result.summary, "", width),
    "",
    ...review.actions.flatMap((action, index) => wrapped(`${index + 1}. ${action}`, "   ", width)),
    ...(review.actions.length > 0 ? [""] : []),
    `Review  ${color.bold(shown(result.review))}`,
    "",
    color.dim("Look closer"),
    `  ${command("tree")}`,
    `  ${command("show")}`,
    `  ${command("logs")}`,
    "",
    color.dim("Watch it work"),
    "  npm run demo -- --again --slow",
    "",
  ].join("\n");
}

/** Breaks a text between words; lines after the first are indented. */
function wrapped(text: string, indent: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? "";
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length <= Math.min(width, WIDEST) || line.trim() === "") lines[lines.length - 1] = longer;
    else lines.push(`${indent}${word}`);
  }
  return lines;
}

function shown(path: string): string {
  const short = relative(process.env["INIT_CWD"] ?? process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
}

function agoText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3_600)} h ago`;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
