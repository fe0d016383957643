import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Errand, type RunHandle, createErrand } from "errand";
import { createSqliteStore } from "errand/sqlite";
import { reviewAgents } from "./agents.ts";
import { Review, type ReviewResult } from "./findings.ts";
import type { ModelChoice } from "./model-choice.ts";
import { readReleaseInput } from "./tools/release-input.ts";

/** Where the example stands; its folders are the defaults. */
export const HERE = dirname(fileURLToPath(import.meta.url));

export interface ReviewOptions {
  /** Absolute paths. */
  readonly before: string;
  readonly after: string;
  readonly out: string;
  /** Path of the SQLite file that remembers everything. */
  readonly store: string;
  readonly model: ModelChoice;
  /** Reviews once more what has been reviewed already. */
  readonly again: boolean;
  readonly paceMs: number;
}

/** How this call meets the Run that it asks for. */
export type Meeting =
  | { readonly kind: "started" }
  /** Another process began it, and was stopped or is still at it. */
  | { readonly kind: "goes_on"; readonly sinceMs: number }
  | { readonly kind: "done"; readonly sinceMs: number };

export interface Watcher {
  /** The Run is there; watch it until it ends or the signal aborts. */
  watch(errand: Errand, run: RunHandle<ReviewResult>, meeting: Meeting): Promise<void>;
  /** Something that an operator should know, such as a store that cannot be written. */
  trouble?(message: string): void;
}

export interface Reviewed {
  readonly runId: string;
  readonly result: ReviewResult;
  readonly review: Review;
}

/**
 * Reviews a release with a worker in this process. The Run is named by what it is about, so the same call after a crash goes on
 * with the same tree, and after the end it finds the review that is there.
 * @returns null if the watcher stopped before the end
 * @throws ReleaseInputError when the folders cannot be reviewed
 */
export async function reviewRelease(options: ReviewOptions, watcher: Watcher): Promise<Reviewed | null> {
  const { before, after, out, model, paceMs } = options;
  const { digest } = await readReleaseInput({ before, after });
  const agent = reviewAgents({ model: model.model, paceMs });
  await mkdir(dirname(options.store), { recursive: true });
  await using errand = await createErrand({
    store: createSqliteStore(options.store),
    agents: [agent],
    // A killed process is taken over as soon as its lease has run out.
    worker: { leaseMs: 3_000, sweepMs: 500 },
    telemetry: {
      emit: (event) => {
        if ("error" in event) watcher.trouble?.(String(event.error));
      },
    },
  });
  const { ref } = await errand.resolve(agent.name);
  const work = sha256([digest, before, after, out, ref]);
  for (let round = 1; ; round++) {
    const asked = errand.store.now();
    const run = await errand.start(agent, { before, after, out }, { key: `release-review:${work}:${round}` });
    const { createdAt, state, end } = await run.status();
    const isNew = createdAt >= asked;
    if (state === "ended" && !isNew) {
      const isThere = end?.kind === "completed" && (await reviewBy(run.runId, out)) !== null;
      if (options.again || !isThere) continue;
    }
    const sinceMs = asked - createdAt;
    await watcher.watch(
      errand,
      run,
      isNew
        ? { kind: "started" }
        : state === "ended"
          ? { kind: "done", sinceMs }
          : { kind: "goes_on", sinceMs },
    );
    if ((await run.status()).state !== "ended") return null;
    const result = await run.result();
    const review = await reviewBy(run.runId, out);
    if (review === null) throw new Error(`${join(out, "review.json")} has been replaced by another review.`);
    return { runId: run.runId, result, review };
  }
}

/** The review in a folder, if this Run has written it: review.json begins with the key of the call that did. */
async function reviewBy(runId: string, out: string): Promise<Review | null> {
  const text = await readFile(join(out, "review.json"), "utf8").catch(() => null);
  if (text === null) return null;
  const record = JSON.parse(text) as { readonly effectKey?: string };
  return record.effectKey?.startsWith(`${runId}:`) === true ? Review.parse(record) : null;
}

function sha256(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}
