import { readFileSync } from "node:fs";
import { Command, CommanderError, Option } from "commander";
import { failureOf, usageError } from "./cli-error.ts";
import { type Perform, type Register, examples } from "./commands/command.ts";
import { agentsCommand } from "./commands/agents.ts";
import { cancelCommand, continueCommand, pauseCommand } from "./commands/control.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { eraseCommand } from "./commands/erase.ts";
import { initCommand } from "./commands/init.ts";
import { limitsCommand } from "./commands/limits.ts";
import { logsCommand } from "./commands/logs.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { pruneCommand } from "./commands/prune.ts";
import { psCommand } from "./commands/ps.ts";
import { resumeCommand } from "./commands/resume.ts";
import { runCommand } from "./commands/run.ts";
import { showCommand } from "./commands/show.ts";
import { ticketsCommand } from "./commands/tickets.ts";
import { treeCommand } from "./commands/tree.ts";
import { verifyCommand } from "./commands/verify.ts";
import { workerCommand } from "./commands/worker.ts";
import { workersCommand } from "./commands/workers.ts";
import { EXIT, EXIT_HELP, type ExitCode } from "./exit-code.ts";
import { Output, type OutputStream } from "./output.ts";
import { type GlobalOptions, Session } from "./session.ts";

const COMMANDS: readonly Register[] = [
  initCommand,
  runCommand,
  workerCommand,
  psCommand,
  treeCommand,
  showCommand,
  logsCommand,
  ticketsCommand,
  resumeCommand,
  cancelCommand,
  pauseCommand,
  continueCommand,
  agentsCommand,
  workersCommand,
  limitsCommand,
  pruneCommand,
  eraseCommand,
  doctorCommand,
  migrateCommand,
  verifyCommand,
];

/** The process around the program, as far as it is looked at. */
export interface Surroundings {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
}

/** Runs one command line to its end and returns the exit status. */
export async function main(args: readonly string[], around: Surroundings): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.done;
  const perform: Perform = async (command, work) => {
    const options = command.optsWithGlobals<GlobalOptions>();
    const out = output(options, around);
    try {
      exitCode = await work(new Session(out, options, around.cwd));
    } catch (error) {
      const failure = failureOf(error);
      out.fail(failure);
      exitCode = failure.exitCode;
    }
  };
  const program = createProgram(perform, around);
  try {
    if (args.length === 0) {
      around.stderr.write(program.helpInformation());
      return EXIT.usage;
    }
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const color = args.includes("--no-color") ? false : undefined;
    const out = output({ json: args.includes("--json"), color: color !== false }, around);
    const failure = failureOf(error instanceof CommanderError ? misuse(error, args) : error);
    out.fail(failure);
    return failure.exitCode;
  }
}

function createProgram(perform: Perform, around: Surroundings): Command {
  const program = new Command("errand")
    .description("Start, watch and answer durable runs of agents that delegate to agents.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print the help of a command")
    .addOption(new Option("--config <file>", "use this config instead of the nearest errand.config.ts"))
    .addOption(new Option("--store <path>", "use this SQLite database instead of the config's store"))
    .addOption(new Option("--tenant <name>", "whose runs to work with"))
    .addOption(new Option("--json", "print JSON on stdout, and errors as JSON on stderr"))
    .addOption(new Option("--no-color", "never colour; so does NO_COLOR, while FORCE_COLOR always does"))
    .addOption(new Option("-q, --quiet", "print data and errors only"))
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void around.stdout.write(text),
      writeErr: () => undefined,
      getOutHelpWidth: () => around.stdout.columns ?? 100,
      getErrHelpWidth: () => around.stderr.columns ?? 100,
    })
    .showSuggestionAfterError(true)
    .exitOverride()
    .addHelpText(
      "after",
      `${examples(
        ["errand init", "write a config and a first agent"],
        [`errand run party --input '{"guests":["Ada"]}'`, "start a run and watch it"],
        ["errand ps", "list live runs"],
        ["errand tickets", "list what waits for a person"],
      )}\n\n${EXIT_HELP}\n\n\`errand help <command>\` has examples of each command.`,
    );
  for (const register of COMMANDS) register(program, perform);
  return program;
}

function misuse(error: CommanderError, args: readonly string[]): Error {
  const [first = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const hint = rest.join(" ").trim();
  const command = args.find((one) => !one.startsWith("-"));
  const known = error.code !== "commander.unknownCommand" && command !== undefined;
  return usageError(
    `${first.charAt(0).toUpperCase()}${first.slice(1)}.`,
    `${hint === "" ? "" : `${hint.replace(/^\(|\)$/g, "")} `}See \`errand ${known ? `${command} ` : ""}--help\`.`,
  );
}

function output(options: GlobalOptions, around: Surroundings): Output {
  return new Output({
    stdout: around.stdout,
    stderr: around.stderr,
    env: around.env,
    json: options.json === true,
    quiet: options.quiet === true,
    color: options.color === false ? false : undefined,
  });
}

function packageVersion(): string {
  const manifest = new URL("../../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version;
}
