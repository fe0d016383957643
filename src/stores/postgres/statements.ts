import { readFileSync } from "node:fs";

/** One statement a file; its comment names the indexes that serve it. */
const NAMES = [
  "begin_reading",
  "claim_runs",
  "clock",
  "commit_group",
  "count_runs",
  "delegation",
  "delegations",
  "delegations_of_parent",
  "delegations_of_tree",
  "end_workers",
  "ended_threads",
  "erase_tenant",
  "erase_user",
  "head_publication",
  "heartbeat",
  "horizon",
  "inbox",
  "inspect",
  "lifecycle_feed",
  "limits",
  "log_of_all",
  "log_of_run",
  "log_of_thread",
  "log_of_tree",
  "next_due",
  "notify",
  "operational_feed",
  "orphaned_delegations",
  "pending",
  "pending_intents",
  "prune_thread",
  "prune_workers",
  "publication",
  "publications",
  "put_publication",
  "register_worker",
  "release_runs",
  "run",
  "running",
  "runs_live_newest",
  "runs_live_oldest",
  "runs_newest",
  "runs_of_parent",
  "runs_of_thread",
  "runs_of_tree",
  "runs_oldest",
  "set_limits",
  "ticket",
  "tickets",
  "tickets_of_run",
  "tickets_of_tree",
  "tickets_open",
  "tombstones",
  "workers",
] as const;

export type StatementName = (typeof NAMES)[number];
export type Statements = Readonly<Record<StatementName, string>>;

const FOLDER = new URL("./statements/", import.meta.url);

export function readStatements(schema: string): Statements {
  const entries = NAMES.map((name) => {
    const text = readFileSync(new URL(`${name}.sql`, FOLDER), "utf8");
    return [name, inSchema(text.replaceAll(/^--.*\n/gm, ""), schema)] as const;
  });
  return Object.fromEntries(entries) as Record<StatementName, string>;
}

/** The files say `errand.`; the store may have been opened with another schema. */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll(/\berrand\./g, `${quoted(schema)}.`);
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
