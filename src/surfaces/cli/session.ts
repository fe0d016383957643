import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ErrandError } from "../../domain/errand-error.ts";
import type { Store } from "../../runtime/ports/store.ts";
import type { Telemetry } from "../../runtime/ports/telemetry.ts";
import type { WorkerOptions } from "../../runtime/worker/worker.ts";
import type { Errand } from "../library/errand.ts";
import { EXIT } from "./exit-code.ts";
import { type Project, findConfig, loadConfig } from "./load-config.ts";
import type { Output } from "./output.ts";

export interface GlobalOptions {
  readonly config?: string;
  readonly store?: string;
  readonly tenant?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** False after `--no-color`, true otherwise. */
  readonly color?: boolean;
}

export interface OpenOptions {
  /** Load and publish the config's agents. */
  readonly agents?: boolean;
  readonly worker?: Partial<WorkerOptions> | false;
  /** Make the database if there is none; otherwise its absence is an error. */
  readonly create?: boolean;
  /** Sees the store before it is used. */
  readonly wrap?: (store: Store) => Store;
}

/** What one command works with: its options, its output, its project, and its interrupt. */
export class Session {
  readonly out: Output;
  readonly options: GlobalOptions;
  readonly cwd: string;
  #project: Promise<Project | null> | null = null;
  #interrupt: AbortController | null = null;

  constructor(out: Output, options: GlobalOptions, cwd: string) {
    this.out = out;
    this.options = options;
    this.cwd = cwd;
  }

  /** Options that a command to copy must repeat to mean the same store. */
  get scope(): readonly string[] {
    const { config, store, tenant } = this.options;
    return [
      ...(config === undefined ? [] : ["--config", config]),
      ...(store === undefined ? [] : ["--store", store]),
      ...(tenant === undefined ? [] : ["--tenant", tenant]),
    ];
  }

  /** The config named by `--config`, or the nearest one; null if there is none. */
  project(): Promise<Project | null> {
    const { config } = this.options;
    const file = config === undefined ? findConfig(this.cwd) : resolve(this.cwd, config);
    this.#project ??= file === null ? Promise.resolve(null) : loadConfig(file);
    return this.#project;
  }

  /** The project, or null where it is not needed and cannot be loaded. */
  async #projectFor(needed: boolean): Promise<Project | null> {
    if (needed || this.options.store === undefined) return this.project();
    return this.project().catch((error: unknown) => {
      this.out.warn(`the config was left aside: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    });
  }

  /** Path of the database, or null where the config opens a store of its own. */
  storePath(project: Project | null): string | null {
    const { store } = this.options;
    if (store !== undefined) return resolve(this.cwd, store);
    if (typeof project?.config.store === "function") return null;
    if (project !== null) return resolve(project.folder, project.config.store ?? DEFAULT_STORE);
    const path = join(this.cwd, DEFAULT_STORE);
    if (existsSync(path)) return path;
    throw new ErrandError(
      "INVALID_CONFIG",
      `There is no errand.config.ts in ${this.cwd} or above it.`,
      "Write one with `errand init`, or name a database with --store.",
    );
  }

  tenant(project: Project | null): string {
    return this.options.tenant ?? project?.config.tenant ?? "default";
  }

  async open(options: OpenOptions = {}): Promise<Errand> {
    const { agents = false, worker = false, create = false, wrap = (store) => store } = options;
    const project = await this.#projectFor(agents);
    const store = wrap(await this.#openStore(project, create));
    const { createErrand } = await import("../library/create-errand.ts");
    return createErrand({
      store,
      agents: agents ? (project?.config.agents ?? []) : [],
      tenant: this.tenant(project),
      worker: worker === false ? false : { ...project?.config.worker, ...worker },
      settings: project?.config.settings ?? {},
      telemetry: this.#telemetry,
    });
  }

  /** Opens for one piece of work, and closes whatever comes of it. */
  async use<T>(options: OpenOptions, work: (errand: Errand) => Promise<T>): Promise<T> {
    const errand = await this.open(options);
    try {
      return await work(errand);
    } finally {
      if (this.#interrupt?.signal.aborted === true && (errand.worker?.active ?? 0) > 0) {
        this.out.note("Letting work under way reach a safe point; once more ends it at once.");
      }
      await errand.close({ graceMs: GRACE_MS });
    }
  }

  /** Aborts at the first SIGINT or SIGTERM; the second one ends the program at once. */
  interrupt(): AbortSignal {
    if (this.#interrupt !== null) return this.#interrupt.signal;
    const controller = new AbortController();
    this.#interrupt = controller;
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      process.on(name, () => {
        if (controller.signal.aborted) process.exit(EXIT.interrupted);
        controller.abort(new Error(name));
      });
    }
    return controller.signal;
  }

  async #openStore(project: Project | null, create: boolean): Promise<Store> {
    const own = project?.config.store;
    const path = this.storePath(project);
    if (path === null) return (own as () => Store | Promise<Store>)();
    if (!create && !existsSync(path)) {
      throw new ErrandError(
        "NOT_FOUND",
        `There is no database ${path} yet.`,
        "Start a run with `errand run <agent>`, or make it with `errand migrate`.",
      );
    }
    await prepareFolder(path);
    const { createSqliteStore } = await import("../../stores/sqlite/index.ts");
    return createSqliteStore(path);
  }

  readonly #telemetry: Telemetry = {
    emit: (event) => {
      switch (event.type) {
        case "run_warning":
          this.out.warn(`${event.runId}: ${event.message}`);
          break;
        case "run_abandoned":
          this.out.note(`${event.runId} was given back in the middle: ${event.reason}`);
          break;
        case "store_trouble":
          this.out.warn(`the store had trouble during ${event.during}: ${messageOf(event.error)}`);
          break;
        case "worker_lost_lease":
          this.out.warn(`the lease of ${event.incarnation} was lost; its work starts again under a new one`);
          break;
        case "worker_dead":
          this.out.note(`worker ${event.incarnation} is dead; its runs are taken over`);
          break;
        case "unexpected":
          this.out.warn(`${event.runId ?? "the worker"} met a defect: ${messageOf(event.error)}`);
          break;
        default:
          event satisfies never;
      }
    },
  };
}

/** How long a command that is over waits for work under way in its own worker. */
const GRACE_MS = 2_000;
const DEFAULT_STORE = join(".errand", "errand.db");

/** The database's folder; the default one keeps itself out of version control. */
export async function prepareFolder(path: string): Promise<void> {
  const folder = dirname(path);
  const made = await mkdir(folder, { recursive: true }).catch((cause: unknown) => {
    throw new ErrandError(
      "STORE_UNAVAILABLE",
      `The folder ${folder} cannot be made: ${messageOf(cause)}.`,
      "Give this user the right to write there, or choose another path with --store.",
      { cause },
    );
  });
  if (made !== undefined && path.endsWith(DEFAULT_STORE)) await writeFile(join(folder, ".gitignore"), "*\n");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
