import type { RunRow, WorkerRow } from "../../../runtime/ports/store.ts";
import type { AgentDefinition } from "../../../runtime/ports/agent.ts";
import { PublicationCatalog } from "../../../runtime/catalog/publication-catalog.ts";
import type { Errand } from "../../library/errand.ts";
import { type Failure, failureOf } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { counted } from "../fact-text.ts";
import type { Project } from "../load-config.ts";
import { durationText } from "../measure.ts";
import type { Session } from "../session.ts";
import { errandCommand } from "../shell-command.ts";
import type { Style } from "../style.ts";
import { type Register, examples } from "./command.ts";

/** One line of the examination. `exitCode` is what a failed one makes the program exit with. */
interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly fix: string | null;
  readonly exitCode?: ExitCode;
}

export const doctorCommand: Register = (program, perform) => {
  program
    .command("doctor")
    .summary("examine the installation, the config and the store")
    .description(
      "Examine Node, the SQLite driver, the config and its agents, the store, the workers, and what waits. Every line " +
        "that is not ok says what to do. Nothing is changed, except that a database is brought to this release's schema.",
    )
    .addHelpText(
      "after",
      examples(
        ["errand doctor", "in the project's folder"],
        ["errand doctor --json", "for a script or a report"],
      ),
    )
    .action(async (_options: unknown, command) =>
      perform(command, async (session) => {
        const { out } = session;
        const checks = await examine(session);
        if (out.json) out.document({ checks: checks.map(({ exitCode: _, ...check }) => check) });
        else out.lines(checks.flatMap((check) => checkLines(check, out.style)));
        const failed = checks.find((check) => check.status === "fail");
        return failed === undefined ? EXIT.done : (failed.exitCode ?? EXIT.internal);
      }),
    );
};

async function examine(session: Session): Promise<readonly Check[]> {
  const checks: Check[] = [nodeCheck(), driverCheck()];
  let project: Project | null = null;
  try {
    project = await session.project();
    checks.push(configCheck(project));
  } catch (error) {
    checks.push(failed("config", failureOf(error)));
  }
  if (project !== null) checks.push(...agentChecks(project.config.agents ?? []));
  const store = await storeChecks(session, project).catch((error: unknown) => [
    failed("store", failureOf(error)),
  ]);
  checks.push(...store);
  const isUsable =
    store.every((check) => check.status !== "fail") && store.some((check) => check.name === "schema");
  if (isUsable) {
    const found = await session
      .use({}, (errand) => workChecks(session, errand))
      .catch((error: unknown) => [failed("store", failureOf(error))]);
    checks.push(...found);
  }
  return checks;
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 19);
  const detail = `${process.version} on ${process.platform} ${process.arch}`;
  return isNew ? ok("node", detail) : warn("node", detail, "Use Node 20.19 or newer.");
}

function driverCheck(): Check {
  return process.getBuiltinModule("node:sqlite") === undefined
    ? ok("driver", "@photostructure/sqlite, since this Node has no node:sqlite")
    : ok("driver", "node:sqlite");
}

function configCheck(project: Project | null): Check {
  return project === null
    ? warn("config", "there is no errand.config.ts here or above", "Write one with `errand init`.")
    : ok("config", project.file);
}

function agentChecks(agents: readonly AgentDefinition[]): readonly Check[] {
  if (agents.length === 0) return [warn("agents", "the config lists none", "Add them to `agents`.")];
  // Loading is pure; no store is touched before one is examined.
  const catalog = new PublicationCatalog(undefined as never);
  const checks: Check[] = [];
  for (const agent of agents) {
    try {
      catalog.load(agent);
    } catch (error) {
      checks.push(failed("agents", failureOf(error)));
    }
  }
  return [ok("agents", [...catalog.carries.keys()].join(", ")), ...checks];
}

async function storeChecks(session: Session, project: Project | null): Promise<readonly Check[]> {
  const path = session.storePath(project);
  if (path === null) return [ok("store", "opened by the config"), ok("schema", "kept by that store")];
  const { inspectDatabase } = await import("../../../stores/sqlite/inspect-database.ts");
  const found = await inspectDatabase(path);
  if (!found.writable) {
    const fix = "Give this user the right to write there, or name another path with --store.";
    return [
      { name: "store", status: "fail", detail: `${path} cannot be written`, fix, exitCode: EXIT.store },
    ];
  }
  if (!found.exists)
    return [warn("store", `${path} is not made yet`, "`errand run` makes it, or `errand migrate`.")];
  const schema = `${found.schema} of ${found.known}`;
  return [
    ok("store", `${path}, SQLite ${found.sqliteVersion ?? "unknown"}`),
    found.schema > found.known
      ? {
          name: "schema",
          status: "fail",
          detail: `${schema}: a newer release wrote the file`,
          fix: "Upgrade errand here to that release.",
          exitCode: EXIT.store,
        }
      : found.schema < found.known
        ? warn("schema", `${schema}; to come: ${found.pending.join(", ")}`, "Run `errand migrate`.")
        : ok("schema", schema),
    found.journalMode === "wal"
      ? ok("journal", "write-ahead log")
      : warn(
          "journal",
          `mode ${found.journalMode}`,
          "Opening it with errand sets the write-ahead log: `errand migrate`.",
        ),
  ];
}

async function workChecks(session: Session, errand: Errand): Promise<readonly Check[]> {
  const { scope } = session;
  const workers = (await errand.workers()).filter((worker) => !worker.dead);
  const counts = await errand.store.countRuns(errand.tenant);
  const live = Object.entries(counts).filter(([state, count]) => state !== "ended" && count > 0);
  const tickets = await errand.tickets();
  const runs = live.map(([state, count]) => `${count} ${state}`).join(", ") || "none live";
  return [
    workersCheck(workers, errand.store.now(), live.length > 0, scope),
    ok("runs", `${runs}, ${counts.ended} ended`),
    await unclaimedCheck(errand),
    tickets.length === 0
      ? ok("tickets", "none open")
      : warn(
          "tickets",
          `${counted(tickets.length, "ticket")} open`,
          `See ${errandCommand(["tickets"], scope)}`,
        ),
    ...(await storeFindings(errand)),
  ];
}

/** What the store itself has to tell an operator. A Run that nobody claims is told of above, with the reason. */
async function storeFindings(errand: Errand): Promise<readonly Check[]> {
  const findings = await errand.store.operations.inspect(errand.tenant);
  return findings
    .filter((one) => one.runId === null)
    .map(({ name, value, level, fix }) => ({
      name: "database",
      status: level,
      detail: findingText(name, value),
      fix,
    }));
}

function findingText(name: string, value: string | number): string {
  const [, label = name, unit] = /^(.*), (ms|bytes)$/.exec(name) ?? [];
  if (typeof value === "string") return `${label}: ${value}`;
  return `${label}: ${unit === "ms" ? durationText(value) : unit === "bytes" ? sizeText(value) : value}`;
}

/** `812 B`, `4.0 KiB`, `1.2 GiB`. */
function sizeText(bytes: number): string {
  let size = bytes;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1_024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1_024;
  }
  return `${size.toFixed(1)} GiB`;
}

/** Longer without a heartbeat than the default lease allows. */
const SILENT_MS = 15_000;

function workersCheck(
  workers: readonly WorkerRow[],
  now: number,
  isWanted: boolean,
  scope: readonly string[],
): Check {
  const start = `Start one: ${errandCommand(["worker"], scope)}`;
  if (workers.length === 0)
    return isWanted ? warn("workers", "none is alive", start) : ok("workers", "none is alive");
  const names = workers.map((one) => `${one.name} (${durationText(now - one.heartbeatAt)} ago)`).join(", ");
  const silent = workers.every((one) => now - one.heartbeatAt > SILENT_MS);
  return silent ? warn("workers", `${names}: nobody gives a sign of life`, start) : ok("workers", names);
}

async function unclaimedCheck(errand: Errand): Promise<Check> {
  const ready = await errand.store.listRuns(errand.tenant, { states: ["ready"], order: "oldest", limit: 50 });
  const now = errand.store.now();
  const due = (row: RunRow): number => row.dueAt ?? row.createdAt;
  const [oldest] = [...ready].sort((left, right) => due(left) - due(right));
  if (oldest === undefined) return ok("queue", "no run waits for a worker");
  const since = now - due(oldest);
  const { why } = await errand.status(oldest.runId);
  const detail = `${oldest.runId} has waited ${durationText(since)}. ${why}`;
  return since < 1_000
    ? ok("queue", detail)
    : warn("queue", detail, "See what it waits for; start a worker, or raise a limit with `errand limits`.");
}

function checkLines(check: Check, style: Style): readonly string[] {
  const { color, unicode } = style;
  const sign = {
    ok: color.green(unicode ? "✓ ok  " : "ok  "),
    warn: color.yellow(unicode ? "▲ warn" : "warn"),
    fail: color.red(unicode ? "✗ fail" : "fail"),
  }[check.status];
  const line = `${sign} ${color.bold(check.name.padEnd(8))} ${check.detail}`;
  return check.fix === null
    ? [line]
    : [line, `                ${color.dim(unicode ? "→" : "->")} ${check.fix}`];
}

function ok(name: string, detail: string): Check {
  return { name, status: "ok", detail, fix: null };
}

function warn(name: string, detail: string, fix: string): Check {
  return { name, status: "warn", detail, fix };
}

function failed(name: string, failure: Failure): Check {
  const { code, message, fix, exitCode } = failure;
  return { name, status: "fail", detail: `[${code}] ${message}`, fix, exitCode };
}
