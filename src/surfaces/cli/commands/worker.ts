import type { RunFact } from "../../../domain/run/run-fact.ts";
import type { Commit, Store } from "../../../runtime/ports/store.ts";
import { decodeFacts } from "../../../runtime/run/loaded-run.ts";
import type { Errand } from "../../library/errand.ts";
import { CliError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { counted, factText } from "../fact-text.ts";
import { clockText } from "../measure.ts";
import type { Session } from "../session.ts";
import { WorkerHealth } from "../worker-health.ts";
import { type Register, examples } from "./command.ts";
import { duration, wholeNumber } from "./option-values.ts";

interface WorkerCommandOptions {
  readonly concurrency?: number;
  readonly grace: number;
  readonly healthPort?: number;
  readonly healthHost: string;
}

export const workerCommand: Register = (program, perform) => {
  program
    .command("worker")
    .summary("carry runs until stopped")
    .description(
      "Publish the config's agents and carry their runs, also those that another process left behind. SIGTERM or " +
        "SIGINT lets every run reach a safe point and hands it back; a second signal ends the process at once.",
    )
    .option("-c, --concurrency <n>", "runs carried at the same time", wholeNumber("--concurrency"))
    .option(
      "--grace <time>",
      "how long runs may take to reach a safe point when stopping",
      duration("--grace"),
      10_000,
    )
    .option(
      "--health-port <n>",
      "answer GET /health and GET /ready on this port (0: any that is free)",
      wholeNumber("--health-port", 0),
    )
    .option("--health-host <address>", "where to listen for them", "127.0.0.1")
    .addHelpText(
      "after",
      examples(
        ["errand worker", "in the foreground, with a line for what it does"],
        ["errand worker --concurrency 4", "at most four runs at a time"],
        ["errand worker --health-port 8080 --health-host 0.0.0.0", "with probes for an orchestrator"],
        ["errand worker --json", "an object a line, for a log collector"],
      ),
    )
    .action(async (options: WorkerCommandOptions, command) =>
      perform(command, (session) => work(session, options)),
    );
};

async function work(session: Session, options: WorkerCommandOptions): Promise<ExitCode> {
  const { out } = session;
  const signal = session.interrupt();
  const agents = (await session.project())?.config.agents ?? [];
  if (agents.length === 0) {
    throw new CliError(
      "USAGE",
      EXIT.usage,
      "There is no agent to carry.",
      "List agents in `agents` of errand.config.ts; `errand init` writes an example.",
    );
  }
  let errand: Errand | null = null;
  const names = new Map<string, string>();
  const told = (commit: Commit, at: number): void => {
    for (const run of commit.create) names.set(run.runId, run.agent);
    const { lane } = commit;
    if (lane === null || errand === null) return;
    for (const fact of decodeFacts(lane.body))
      if (isNews(fact)) void report(session, errand, names, lane.runId, at, fact);
  };
  const { concurrency, grace, healthPort, healthHost } = options;
  await using health =
    healthPort === undefined
      ? null
      : await WorkerHealth.listen({
          host: healthHost,
          port: healthPort,
          errand: () => errand,
          stopping: () => signal.aborted,
        });
  errand = await session.open({
    agents: true,
    create: true,
    worker: concurrency === undefined ? {} : { concurrency },
    wrap: (store) => observed(store, told),
  });
  const { worker } = errand;
  const incarnation = worker?.incarnation ?? null;
  const carries = [...(worker?.carries ?? [])].sort();
  const healthAt = health === null ? null : `http://${healthHost}:${health.port}`;
  if (out.json)
    out.item({ event: "worker_started", incarnation, pid: process.pid, carries, health: healthAt });
  else {
    const names = carries.map((ref) => ref.slice(0, ref.indexOf("@"))).join(", ");
    out.note(`${incarnation} (process ${process.pid}) carries ${counted(carries.length, "agent")}: ${names}`);
    if (healthAt !== null) out.note(`Probes: ${healthAt}/health and ${healthAt}/ready`);
  }
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const left = worker?.active ?? 0;
  if (left > 0) out.note(`Stopping; handing back ${counted(left, "run")}. Once more ends it at once.`);
  await errand.close({ graceMs: grace });
  if (out.json) out.item({ event: "worker_stopped", incarnation });
  else out.note("Stopped.");
  return EXIT.done;
}

/** The store, with a listener that hears of each commit of this process once it stands. */
function observed(store: Store, told: (commit: Commit, at: number) => void): Store {
  const commit: Store["commit"] = async (one) => {
    const outcome = await store.commit(one);
    if (outcome.kind === "committed") told(one, outcome.receipt.at);
    return outcome;
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "commit") return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as () => unknown).bind(target) : value;
    },
  });
}

function isNews(fact: RunFact): boolean {
  switch (fact.type) {
    case "attempt_started":
    case "attempt_failed":
    case "ticket_opened":
    case "call_indeterminate":
    case "run_ended":
      return true;
    default:
      return false;
  }
}

async function report(
  session: Session,
  errand: Errand,
  names: Map<string, string>,
  runId: string,
  at: number,
  fact: RunFact,
): Promise<void> {
  const { out } = session;
  const agent = names.get(runId) ?? (await errand.status(runId).catch(() => null))?.agent ?? "?";
  if (fact.type === "run_ended") names.delete(runId);
  else names.set(runId, agent);
  if (out.json) {
    out.item({ event: fact.type, at, runId, agent, fact });
    return;
  }
  const { color } = out.asideStyle;
  out.note(`${color.dim(clockText(at))} ${runId} ${color.bold(agent)} ${factText(fact, () => null)}`);
}
