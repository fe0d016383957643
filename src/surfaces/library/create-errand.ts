import { hostname } from "node:os";
import { ErrandError } from "../../domain/errand-error.ts";
import { type IncarnationId, parseTenantId } from "../../domain/id.ts";
import { PublicationCatalog } from "../../runtime/catalog/publication-catalog.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import type { IdSource } from "../../runtime/ports/id-source.ts";
import type { LiveBus } from "../../runtime/ports/live-bus.ts";
import type { Store } from "../../runtime/ports/store.ts";
import type { Telemetry } from "../../runtime/ports/telemetry.ts";
import { DEFAULT_SETTINGS, type RuntimeSettings } from "../../runtime/step/runtime-settings.ts";
import { Worker, type WorkerOptions } from "../../runtime/worker/worker.ts";
import { Errand } from "./errand.ts";
import { InProcessBus } from "./in-process-bus.ts";
import { randomIds } from "./random-ids.ts";
import { systemClock } from "./system-clock.ts";

export interface ErrandOptions {
  /** Where everything is kept: `createSqliteStore("errand.db")` or `createMemoryStore()`. It is closed with the Errand. */
  readonly store: Store | Promise<Store>;
  /** The agents that this process can carry; those in their rosters come along. */
  readonly agents: readonly AgentDefinition[];
  /** Whose Runs these are; every key in the store starts with it. Default `default`. */
  readonly tenant?: string;
  /** How the worker in this process works; `false` for a process that only starts and watches Runs. */
  readonly worker?: Partial<WorkerOptions> | false;
  readonly settings?: Partial<RuntimeSettings>;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly bus?: LiveBus;
  /** Told what an operator should know. The library itself never prints. */
  readonly telemetry?: Telemetry;
}

/** Defaults of a worker; times in milliseconds. */
export const DEFAULT_WORKER: Omit<WorkerOptions, "name" | "host" | "pid"> = {
  concurrency: 16,
  leaseMs: 15_000,
  pollMs: 500,
  sweepMs: 5_000,
  warmRuns: 256,
};

/**
 * Opens an Errand: publishes the agents, starts a worker unless told otherwise, and returns the door to everything.
 * @throws ErrandError INVALID_AGENT, INVALID_CONFIG, or the store's own STORE_* error
 */
export async function createErrand(options: ErrandOptions): Promise<Errand> {
  const store = await options.store;
  try {
    const tenant = parseTenantId(options.tenant ?? "default");
    const catalog = new PublicationCatalog(store);
    for (const agent of options.agents) catalog.load(agent);
    const worker = options.worker === false ? null : workerOptions(options.worker ?? {});
    await catalog.publish(tenant);
    const clock = options.clock ?? systemClock;
    const ids = options.ids ?? randomIds;
    const parts = {
      tenant,
      store,
      catalog,
      clock,
      bus: options.bus ?? new InProcessBus(),
      telemetry: options.telemetry ?? { emit: () => undefined },
      settings: { ...DEFAULT_SETTINGS, ...options.settings },
    };
    const running =
      worker === null
        ? null
        : new Worker({
            ...parts,
            options: worker,
            isProcessAlive,
            newIncarnation: () => `inc_${ids.next()}` as IncarnationId,
          });
    const errand = new Errand({
      ...parts,
      ids,
      worker: running,
      pollMs: worker?.pollMs ?? DEFAULT_WORKER.pollMs,
    });
    await running?.start();
    return errand;
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function workerOptions(given: Partial<WorkerOptions>): WorkerOptions {
  const host = hostname();
  const options = { ...DEFAULT_WORKER, name: `${host}-${process.pid}`, host, pid: process.pid, ...given };
  for (const name of ["concurrency", "leaseMs", "pollMs", "sweepMs"] as const) {
    if (!Number.isFinite(options[name]) || options[name] < 1) {
      throw new ErrandError(
        "INVALID_CONFIG",
        `worker.${name} is ${String(options[name])}.`,
        `Give worker.${name} a number of at least 1.`,
      );
    }
  }
  return options;
}
