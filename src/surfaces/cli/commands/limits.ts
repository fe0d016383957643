import { type Command, InvalidArgumentError } from "commander";
import type { RunningLimits } from "../../../runtime/ports/running-limits.ts";
import type { Errand } from "../../library/errand.ts";
import { usageError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Session } from "../session.ts";
import { tableLines } from "../table.ts";
import { type Perform, type Register, examples } from "./command.ts";

interface SetOptions {
  readonly total?: number | "none";
  readonly tree?: number | "none";
  readonly agent?: Readonly<Record<string, number | "none">>;
}

export const limitsCommand: Register = (program, perform) => {
  const limits = program
    .command("limits")
    .summary("show or set how many runs may run at a time")
    .description(
      "Show how many runs of the tenant, of each agent and of one tree may run at the same time, and how many do. Every " +
        "worker obeys the same limits; what waits for one says so in `errand show`.",
    )
    .addHelpText(
      "after",
      examples(
        ["errand limits", "what is set, and what runs"],
        ["errand limits set --total 20 --agent reviewer=2", "change these, keep the others"],
        ["errand limits set --total none", "take a limit away"],
      ),
    )
    .action(async (_options: unknown, command: Command) =>
      perform(command, async (session) => session.use({}, (errand) => show(session, errand))),
    );
  addSet(limits, perform);
};

function addSet(limits: Command, perform: Perform): void {
  limits
    .command("set")
    .summary("change limits")
    .description(
      "Change the limits that are named, and keep the others. A number is how many runs may run at the same time, 0 lets " +
        "nothing begin, `none` takes the limit away. A lower limit stops nothing that runs.",
    )
    .option("--total <n>", "of the tenant", count("--total"))
    .option("--tree <n>", "of one tree", count("--tree"))
    .option("--agent <name=n>", "of an agent, all its versions together; may be repeated", agentCount)
    .addHelpText(
      "after",
      examples(
        ["errand limits set --total 20 --tree 5", "twenty in all, five of one tree"],
        ["errand limits set --agent reviewer=2 --agent writer=none", "by agent"],
        ["errand limits set --total 0", "let what runs finish, and begin nothing"],
      ),
    )
    .action(async (options: SetOptions, command: Command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          if (Object.keys(options).every((name) => !["total", "tree", "agent"].includes(name))) {
            throw usageError("No limit was named.", "Name --total, --tree or --agent.");
          }
          const { operations } = errand.store;
          await operations.setLimits(
            errand.tenant,
            changed(await operations.getLimits(errand.tenant), options),
          );
          return show(session, errand);
        }),
      ),
    );
}

function changed(limits: RunningLimits, { total, tree, agent = {} }: SetOptions): RunningLimits {
  const agents = new Map(Object.entries(limits.agents));
  for (const [name, limit] of Object.entries(agent)) {
    if (limit === "none") agents.delete(name);
    else agents.set(name, limit);
  }
  return {
    tenant: total === undefined ? limits.tenant : total === "none" ? null : total,
    tree: tree === undefined ? limits.tree : tree === "none" ? null : tree,
    agents: Object.fromEntries(agents),
  };
}

async function show(session: Session, errand: Errand): Promise<ExitCode> {
  const { out } = session;
  const { operations } = errand.store;
  const limits = await operations.getLimits(errand.tenant);
  const running = await operations.countRunning(errand.tenant, null);
  if (out.json) {
    out.document({ limits, running: { tenant: running.tenant, agents: running.agents } });
    return EXIT.done;
  }
  const names = new Set([...Object.keys(limits.agents), ...Object.keys(running.agents)]);
  const rows = [
    { of: `tenant ${errand.tenant}`, limit: limits.tenant, runs: String(running.tenant) },
    { of: "each tree", limit: limits.tree, runs: "" },
    ...[...names].sort().map((name) => ({
      of: `agent ${name}`,
      limit: Object.hasOwn(limits.agents, name) ? (limits.agents[name] ?? null) : null,
      runs: String(running.agents[name] ?? 0),
    })),
  ];
  out.lines(
    tableLines(
      out.style,
      [
        { title: "OF", text: (row) => row.of },
        { title: "LIMIT", align: "right", text: (row) => (row.limit === null ? "none" : String(row.limit)) },
        { title: "RUNNING", align: "right", text: (row) => row.runs },
      ],
      rows,
    ),
  );
  return EXIT.done;
}

function count(option: string): (text: string) => number | "none" {
  return (text) => {
    if (text === "none") return text;
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw new InvalidArgumentError(`Give ${option} a whole number, 0 or more, or none.`);
  };
}

function agentCount(
  text: string,
  before: Readonly<Record<string, number | "none">> = {},
): Readonly<Record<string, number | "none">> {
  const at = text.lastIndexOf("=");
  if (at < 1) throw new InvalidArgumentError("Give --agent a name and a number, such as reviewer=2.");
  return { ...before, [text.slice(0, at)]: count("--agent")(text.slice(at + 1)) };
}
