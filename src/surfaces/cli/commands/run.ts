import { Option } from "commander";
import type { Json } from "../../../rules/json.ts";
import { ErrandError } from "../../../domain/errand-error.ts";
import type { RunEnd } from "../../../domain/run/run-end.ts";
import type { AgentDefinition } from "../../../runtime/ports/agent.ts";
import type { Errand } from "../../library/errand.ts";
import { CliError, usageError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { endText } from "../fact-text.ts";
import { type TreeFrame, followTree, readFrame } from "../follow-tree.ts";
import { createLiveTree } from "../live-tree.ts";
import { durationText, usageText } from "../measure.ts";
import { nearest } from "../nearest.ts";
import { isMilestone } from "../run-feed.ts";
import { nodesOf, runJson, waitsForPeople } from "../run-status.ts";
import type { Session } from "../session.ts";
import { errandCommand } from "../shell-command.ts";
import { answerCommand, sampleAnswer } from "../ticket-answer.ts";
import { type Register, examples } from "./command.ts";
import { duration, jsonFile, jsonFromStdin, jsonText } from "./option-values.ts";

interface RunOptions {
  readonly input?: string;
  readonly inputFile?: string;
  readonly key?: string;
  readonly detach?: boolean;
  /** False after `--worker-less`. */
  readonly workerLess?: boolean;
  readonly waitTickets?: boolean;
  readonly timeout?: number;
  readonly user?: string;
}

export const runCommand: Register = (program, perform) => {
  program
    .command("run")
    .summary("start a run and watch it to its end")
    .description(
      "Start a run of an agent, with a worker in this process, and watch its tree until it ends. The result is " +
        "printed on stdout as JSON. The run is durable: when this process dies, a worker or the same command with " +
        "--key takes it up where it stopped.",
    )
    .argument("<agent>", "name of an agent of the config, or the exact ref of a publication")
    .argument("[stdin]", "`-` reads the input from stdin")
    .addOption(new Option("-i, --input <json>", "the input; null if left out").conflicts("inputFile"))
    .option("--input-file <file>", "read the input from a JSON file")
    .option("-k, --key <key>", "names this piece of work: the same key never starts it twice")
    .option("--user <name>", "on whose behalf; `errand erase --user` finds it by this")
    .addOption(new Option("-d, --detach", "print the run's id and leave it to a worker").conflicts("timeout"))
    .option("--worker-less", "watch only; a worker elsewhere does the work")
    .addOption(new Option("--wait-tickets", "wait while a person is asked (default on a terminal)"))
    .addOption(
      new Option("--no-wait-tickets", "exit with 4 once only a person can go on (default elsewhere)"),
    )
    .option("--timeout <time>", "exit with 124 after so long; the run goes on", duration("--timeout"))
    .addHelpText(
      "after",
      examples(
        [`errand run party --input '{"guests":["Ada"]}'`, "start and watch"],
        ["errand run party --input-file guests.json --key friday", "once, however often it is called"],
        ["echo '{}' | errand run party -", "input from a pipe"],
        ["errand run party --detach", "leave it to `errand worker`"],
        ["errand run party --json | jq .output", "for a script"],
      ),
    )
    .action(async (agent: string, stdin: string | undefined, options: RunOptions, command) =>
      perform(command, async (session) => {
        const input = await inputOf(stdin, options);
        const isWatcher = options.detach === true || options.workerLess === true;
        return session.use({ agents: true, worker: isWatcher ? false : {}, create: true }, async (errand) => {
          const definition = await agentNamed(session, errand, agent);
          const run = await errand
            .start(definition, input, { key: options.key, user: options.user })
            .catch((error: unknown) => {
              throw withSample(error, definition, agent);
            });
          return options.detach === true
            ? detached(session, errand, run.runId)
            : watched(session, errand, run.runId, options);
        });
      }),
    );
};

async function inputOf(stdin: string | undefined, options: RunOptions): Promise<Json> {
  const { input, inputFile } = options;
  if (stdin !== undefined && stdin !== "-") {
    throw usageError(
      `${JSON.stringify(stdin)} is one argument too many.`,
      `Give the input as --input '${stdin}'.`,
    );
  }
  if (stdin === "-") {
    if (input !== undefined || inputFile !== undefined) {
      throw usageError("The input is given twice.", "Give either `-` or --input or --input-file.");
    }
    return jsonFromStdin();
  }
  if (inputFile !== undefined) return jsonFile(inputFile);
  return input === undefined ? null : jsonText(input, "--input");
}

/** The config's own agent of that name, so that what stands in the file is what runs; else a publication. */
async function agentNamed(session: Session, errand: Errand, name: string): Promise<AgentDefinition | string> {
  const project = await session.project();
  const known = allAgents(project?.config.agents ?? []);
  const own = known.get(name);
  if (own !== undefined) return own;
  try {
    await errand.resolve(name);
    return name;
  } catch (error) {
    if (!ErrandError.is(error) || error.code !== "UNKNOWN_AGENT") throw error;
    const meant = nearest(name, known.keys());
    const fix =
      meant !== null
        ? `Did you mean ${meant}?`
        : known.size > 0
          ? `The config has ${[...known.keys()].join(", ")}.`
          : "List it in `agents` of errand.config.ts; `errand init` writes an example.";
    throw new ErrandError("UNKNOWN_AGENT", `There is no agent ${JSON.stringify(name)}.`, fix, {
      cause: error,
    });
  }
}

/** Agents by name, with those of their rosters; the outermost of a name wins. */
function allAgents(agents: readonly AgentDefinition[]): ReadonlyMap<string, AgentDefinition> {
  const found = new Map<string, AgentDefinition>();
  for (let level = agents; level.length > 0; ) {
    const next: AgentDefinition[] = [];
    for (const agent of level) {
      if (found.has(agent.name)) continue;
      found.set(agent.name, agent);
      next.push(...agent.roster.map((entry) => entry.agent));
    }
    level = next;
  }
  return found;
}

function withSample(error: unknown, definition: AgentDefinition | string, agent: string): unknown {
  if (!ErrandError.is(error) || error.code !== "INVALID_INPUT" || typeof definition === "string")
    return error;
  if (!error.message.includes("does not fit")) return error;
  const sample = JSON.stringify(sampleAnswer(definition.inputSchema));
  const what = error.message.slice("[INVALID_INPUT] ".length, -error.fix.length - 1);
  const fix = `Send an input of its shape: ${errandCommand(["run", agent, "--input", sample])}`;
  return new ErrandError("INVALID_INPUT", what, fix, { cause: error });
}

async function detached(session: Session, errand: Errand, runId: string): Promise<ExitCode> {
  const { out, scope } = session;
  if (out.json) out.document({ runId });
  else out.line(runId);
  const alive = (await errand.workers()).some((worker) => !worker.dead);
  if (!alive) out.note(`No worker is alive: start one with \`${errandCommand(["worker"], scope)}\`.`);
  return EXIT.done;
}

/** Why watching ended before the Run did. */
type Stop = "interrupted" | "timeout" | "person";

async function watched(
  session: Session,
  errand: Errand,
  runId: string,
  options: RunOptions,
): Promise<ExitCode> {
  const { out } = session;
  const live = process.stderr.isTTY === true && !out.json && !out.quiet;
  const waits = options.waitTickets ?? live;
  const controller = new AbortController();
  let stopped: Stop | null = null;
  const stop = (why: Stop): void => {
    stopped ??= why;
    controller.abort(new Error(why));
  };
  const interrupt = session.interrupt();
  interrupt.addEventListener("abort", () => stop("interrupted"), { once: true });
  const timer =
    options.timeout === undefined ? undefined : setTimeout(() => stop("timeout"), options.timeout);
  const view = live ? await createLiveTree(process.stderr, out.asideStyle, session.scope) : null;
  if (view === null) out.note(`${runId} started`);
  try {
    await followTree(errand, runId, {
      signal: controller.signal,
      onFrame: (frame) => {
        view?.draw(frame);
        if (!waits && waitsForPeople(frame.tree)) stop("person");
      },
      onEvent: (event, feed) => {
        if (view === null && event.kind === "fact" && isMilestone(event))
          out.note(feed.line(event, out.asideStyle));
      },
    });
  } finally {
    view?.done();
    clearTimeout(timer);
  }
  const frame = await readFrame(errand, runId, null);
  return frame.tree.state === "ended"
    ? ended(session, errand, frame)
    : unfinished(session, frame, stopped ?? "interrupted", options);
}

async function ended(session: Session, errand: Errand, frame: TreeFrame): Promise<ExitCode> {
  const { out, scope } = session;
  const { tree } = frame;
  const end = await errand.end(tree.runId);
  const output = end.kind === "completed" ? end.output : null;
  out.note(summaryText(frame, end));
  if (out.json) out.document({ ...runJson(tree), end, output, tickets: [] });
  else if (end.kind === "completed") out.document(output);
  if (end.kind === "completed") return EXIT.done;
  const fix = `See what happened: ${errandCommand(["show", tree.runId], scope)}`;
  const code = `RUN_${end.kind.toUpperCase()}` as
    | "RUN_FAILED"
    | "RUN_CANCELED"
    | "RUN_STOPPED"
    | "RUN_INDETERMINATE";
  throw new ErrandError(code, `${tree.runId} ${endText(end)}.`.replace(/\.\.$/, "."), fix);
}

function summaryText(frame: TreeFrame, end: RunEnd): string {
  const { tree, now } = frame;
  const runs = [...nodesOf(tree)].length;
  return [
    `${tree.runId} ${end.kind} in ${durationText((tree.endedAt ?? now) - tree.createdAt)}`,
    runs > 1 ? `${runs} runs` : "",
    usageText(tree.totalUsage),
  ]
    .filter((one) => one !== "")
    .join(" · ");
}

function unfinished(session: Session, frame: TreeFrame, why: Stop, options: RunOptions): never {
  const { out, scope } = session;
  const { tree, tickets } = frame;
  const { runId } = tree;
  const status = runJson(tree);
  if (out.json) out.document({ ...status, end: null, output: null, tickets });
  const worker = errandCommand(["worker"], scope);
  switch (why) {
    case "person": {
      for (const ticket of tickets) {
        out.note(
          `${ticket.runId} asks (${ticket.kind}): ${ticket.prompt}\n  ${answerCommand(ticket, scope)}`,
        );
      }
      throw new CliError(
        "WAITING",
        EXIT.waitsForPerson,
        `${runId} waits for a person: ${tickets.map((one) => one.ticketId).join(", ")}.`,
        `Answer, then let it go on with \`${worker}\`${options.key === undefined ? "" : " or this same command"}.`,
      );
    }
    case "timeout":
      throw new CliError(
        "WAIT_TIMEOUT",
        EXIT.timeout,
        `${runId} has not ended within ${durationText(options.timeout ?? 0)}; it is still ${status.status}.`,
        `It goes on with \`${worker}\`; watch it with \`${errandCommand(["tree", runId, "-w"], scope)}\`.`,
      );
    case "interrupted":
      throw new CliError(
        "INTERRUPTED",
        EXIT.interrupted,
        `${runId} was left before its end; it is kept and goes on where it stopped.`,
        [
          options.key === undefined ? `Go on:  ${worker}` : `Go on:  this same command, or ${worker}`,
          `Watch:  ${errandCommand(["tree", runId, "-w"], scope)}`,
          `Stop:   ${errandCommand(["cancel", runId], scope)}`,
        ].join("\n"),
      );
    default:
      return why satisfies never;
  }
}
