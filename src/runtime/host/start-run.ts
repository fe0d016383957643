import { sha256Hex } from "../../rules/sha256.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import {
  type OperationId,
  type RunId,
  type TenantId,
  type ThreadId,
  parseRunId,
  parseThreadId,
} from "../../domain/id.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { Json } from "../../rules/json.ts";
import type { Publication } from "../catalog/publication.ts";
import type { Committer } from "../commit/committer.ts";
import { encodeStartCommit } from "../commit/encode-commit.ts";

export interface StartOptions {
  /** The same key starts the same Run, however often it is sent; other content under it is a conflict. */
  readonly key?: string;
  /** Continue this thread instead of opening a new one. One Run of a thread runs at a time; the others queue. */
  readonly threadId?: string;
  /** Milliseconds before the Run may be claimed. */
  readonly delayMs?: number;
  /** 0 (default) to 9; each step counts as a minute of waiting. */
  readonly priority?: number;
  /** On whose behalf; tools see it. */
  readonly user?: string;
  /** Narrows the limits that the agent was published with. */
  readonly limits?: Partial<RunHeader["limits"]>;
}

export interface StartedRun {
  readonly runId: RunId;
  readonly threadId: ThreadId;
  /** False if a start with the same key had made the Run before. */
  readonly created: boolean;
  readonly header: RunHeader;
}

/** Starts a root Run in one commit. Its ids are a function of the key, or drawn when there is none. */
export async function startRun(
  committer: Committer,
  tenant: TenantId,
  publication: Publication,
  input: Json,
  options: StartOptions,
  draw: () => string,
  signal: AbortSignal,
): Promise<StartedRun> {
  const { key, priority = 0, delayMs = 0 } = options;
  if (key !== undefined && (key.trim() === "" || key.length > 200)) {
    throw new ErrandError(
      "INVALID_INPUT",
      "The start key is blank or longer than 200 characters.",
      "Give a key that names this piece of work, or none.",
    );
  }
  if (!Number.isInteger(priority) || priority < 0 || priority > 9) {
    throw new ErrandError(
      "INVALID_INPUT",
      `The priority is ${String(priority)}.`,
      "Give a whole number from 0 to 9.",
    );
  }
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new ErrandError(
      "INVALID_INPUT",
      `The delay is ${String(delayMs)} ms.`,
      "Give milliseconds, 0 or more.",
    );
  }
  const drawn = key === undefined ? draw() : sha256Hex(canonicalJson(["start", tenant, key])).slice(0, 32);
  const runId = parseRunId(`run_${drawn}`);
  const threadId =
    options.threadId === undefined ? (`thr_${drawn}` as ThreadId) : parseThreadId(options.threadId);
  const limits = narrowedLimits(publication, options.limits ?? {});
  const header: RunHeader = {
    runId,
    threadId,
    rootRunId: runId,
    origin: null,
    depth: 0,
    lineage: [publication.name],
    agent: publication.name,
    publication: publication.ref,
    input,
    outputSchema: publication.outputSchema,
    limits,
    treeRuns: limits.maxTreeRuns,
    priority,
    user: options.user ?? null,
  };
  const outcome = await committer.commit(
    encodeStartCommit(tenant, header, `start:${runId}` as OperationId, delayMs),
    () => signal,
  );
  switch (outcome.kind) {
    case "committed":
      return { runId, threadId, created: true, header };
    case "duplicate":
      return { runId, threadId, created: false, header };
    case "conflict":
      throw new ErrandError(
        "START_CONFLICT",
        `${runId} was started before under the key ${JSON.stringify(key)} with another agent, input or option.`,
        "Use another key for other work, or send exactly the first start.",
        { details: { runId } },
      );
    case "refused":
    case "stale":
      if (outcome.reason === "thread_not_root") {
        throw new ErrandError(
          "INVALID_INPUT",
          `${threadId} belongs to a delegated run.`,
          "Start on a thread that a root run has opened.",
        );
      }
      throw new ErrandError(
        "START_CONFLICT",
        `${runId} was not started: ${outcome.reason}.`,
        "Use another key.",
      );
    default:
      return outcome satisfies never;
  }
}

function narrowedLimits(publication: Publication, asked: Partial<RunHeader["limits"]>): RunHeader["limits"] {
  const limits = { ...publication.limits };
  for (const name of ["maxDepth", "maxChildren", "maxParallelChildren", "maxTreeRuns"] as const) {
    const value = asked[name];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < 1 || value > limits[name]) {
      throw new ErrandError(
        "INVALID_INPUT",
        `${name} is ${String(value)}; ${publication.name} allows 1 to ${limits[name]}.`,
        `Give ${name} a whole number within the agent's own limit.`,
      );
    }
    limits[name] = value;
  }
  return limits;
}
