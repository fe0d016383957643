import { ErrandError } from "../../domain/errand-error.ts";
import { parseTenantId } from "../../domain/id.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Store } from "../../runtime/ports/store.ts";
import type { RuntimeSettings } from "../../runtime/step/runtime-settings.ts";
import type { WorkerOptions } from "../../runtime/worker/worker.ts";

/** What `errand.config.ts` exports by default: everything that the `errand` command needs to know of a project. */
export interface ErrandConfig {
  /**
   * Path of the SQLite file, relative to the config's folder, or a function that opens another store.
   * Default `.errand/errand.db`.
   */
  readonly store?: string | (() => Store | Promise<Store>);
  /** The agents that this project's workers carry; those in their rosters come along. */
  readonly agents?: readonly AgentDefinition[];
  /** Whose Runs these are. Default `default`. */
  readonly tenant?: string;
  /** How workers work; times in milliseconds. */
  readonly worker?: Partial<Omit<WorkerOptions, "host" | "pid">>;
  /** How patient the runtime is; times in milliseconds. */
  readonly settings?: Partial<RuntimeSettings>;
}

const WORKER_NUMBERS = ["concurrency", "leaseMs", "pollMs", "sweepMs", "warmRuns"];
const SETTINGS = ["maxFruitlessClaims", "cancelGraceMs", "retryFirstMs", "retryLongestMs"];

/**
 * Types and checks a project's configuration.
 * @throws ErrandError INVALID_CONFIG, which names the field and what to do
 */
export function defineConfig(config: ErrandConfig): ErrandConfig {
  return parseConfig(config, "The config");
}

/** @param of what is being checked, as the start of an error's sentence */
export function parseConfig(value: unknown, of: string): ErrandConfig {
  if (!isObject(value)) {
    throw invalid(
      `${of} is ${shown(value)}, not an object.`,
      "Export one by default: `export default defineConfig({ agents: [] })`.",
    );
  }
  const known = ["store", "agents", "tenant", "worker", "settings"];
  const strange = Object.keys(value).find((name) => !known.includes(name));
  if (strange !== undefined) {
    throw invalid(`${of} has a field ${shown(strange)}.`, `Remove it; the fields are ${known.join(", ")}.`);
  }
  const { store, agents, tenant, worker, settings } = value;
  if (store !== undefined && typeof store !== "function" && (typeof store !== "string" || store === "")) {
    throw invalid(
      `\`store\` of ${lower(of)} is ${shown(store)}.`,
      "Give the path of a SQLite file, or a function that opens a store: `store: () => createMemoryStore()`.",
    );
  }
  if (agents !== undefined) checkAgents(agents, of);
  if (tenant !== undefined) checkTenant(tenant, of);
  checkNumbers(worker, "worker", WORKER_NUMBERS, ["name"], of);
  checkNumbers(settings, "settings", SETTINGS, [], of);
  return value as ErrandConfig;
}

function checkAgents(agents: unknown, of: string): void {
  if (!Array.isArray(agents)) {
    throw invalid(`\`agents\` of ${lower(of)} is ${shown(agents)}.`, "List agents: `agents: [myAgent]`.");
  }
  for (const [at, agent] of agents.entries()) {
    if (isObject(agent) && typeof agent["name"] === "string" && typeof agent["open"] === "function") continue;
    throw invalid(
      `\`agents[${at}]\` of ${lower(of)} is ${shown(agent)}, not an agent.`,
      "Put what functionAgent() or modelAgent() returns there; look for a missing or misspelt import.",
    );
  }
}

function checkTenant(tenant: unknown, of: string): void {
  try {
    parseTenantId(tenant as string);
  } catch (cause) {
    throw new ErrandError(
      "INVALID_CONFIG",
      `\`tenant\` of ${lower(of)} is ${shown(tenant)}.`,
      'Use 1 to 64 letters, digits, ".", "_" and "-", a letter or digit first.',
      { cause },
    );
  }
}

function checkNumbers(
  value: unknown,
  field: string,
  numbers: readonly string[],
  texts: readonly string[],
  of: string,
): void {
  if (value === undefined) return;
  if (!isObject(value)) {
    throw invalid(
      `\`${field}\` of ${lower(of)} is ${shown(value)}.`,
      `Give an object; its fields are ${[...texts, ...numbers].join(", ")}.`,
    );
  }
  for (const [name, one] of Object.entries(value)) {
    if (texts.includes(name)) {
      if (typeof one === "string" && one !== "") continue;
      throw invalid(`\`${field}.${name}\` of ${lower(of)} is ${shown(one)}.`, "Give a text.");
    }
    if (!numbers.includes(name)) {
      throw invalid(
        `\`${field}\` of ${lower(of)} has a field ${shown(name)}.`,
        `Remove it; the fields are ${[...texts, ...numbers].join(", ")}.`,
      );
    }
    if (typeof one !== "number" || !Number.isFinite(one) || one < (name === "warmRuns" ? 0 : 1)) {
      throw invalid(`\`${field}.${name}\` of ${lower(of)} is ${shown(one)}.`, "Give a number of at least 1.");
    }
  }
}

function invalid(what: string, fix: string): ErrandError {
  return new ErrandError("INVALID_CONFIG", what, fix);
}

function lower(of: string): string {
  return of.startsWith("The ") ? `the ${of.slice(4)}` : of;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
