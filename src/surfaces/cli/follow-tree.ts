import { setTimeout as wait } from "node:timers/promises";
import type { OpenTicket } from "../../runtime/host/resume-ticket.ts";
import type { TaskNode } from "../../runtime/view/task-tree.ts";
import type { Errand } from "../library/errand.ts";
import type { StreamEvent } from "../library/stream.ts";
import { RunFeed } from "./run-feed.ts";
import { nodesOf } from "./run-status.ts";

/** A tree as it was read at one moment. */
export interface TreeFrame {
  readonly tree: TaskNode;
  readonly tickets: readonly OpenTicket[];
  readonly notes: ReadonlyMap<string, string>;
  readonly now: number;
}

export interface FollowOptions {
  readonly signal: AbortSignal;
  readonly onEvent?: (event: StreamEvent, feed: RunFeed) => void;
  readonly onFrame: (frame: TreeFrame) => void;
}

/** At most so often is the tree read again, and at least once a second, so that times go on. */
const FRAME_MS = 100;
const IDLE_MS = 1_000;
/** A Run that has not been taken up for so long is said to wait, with the reason. */
const PATIENCE_MS = 1_000;
const MAX_REASONS = 8;

/** Follows a tree until the Run has ended; aborting the signal ends it sooner, without an error. */
export async function followTree(errand: Errand, runId: string, options: FollowOptions): Promise<void> {
  const { signal, onFrame, onEvent } = options;
  const feed = new RunFeed();
  let changed = true;
  let ended = false;
  const stop = new AbortController();
  const until = AbortSignal.any([signal, stop.signal]);
  const pump = (async () => {
    for await (const event of errand.stream(runId, { signal: until })) {
      feed.read(event);
      onEvent?.(event, feed);
      changed = true;
    }
  })().finally(() => {
    ended = true;
  });
  const settled = pump.catch(() => undefined);
  try {
    let drawnAt = Number.NEGATIVE_INFINITY;
    while (!ended) {
      if (changed || performance.now() - drawnAt >= IDLE_MS) {
        changed = false;
        onFrame(await readFrame(errand, runId, feed));
        drawnAt = performance.now();
      }
      const pause = new AbortController();
      await Promise.race([
        settled,
        wait(FRAME_MS, undefined, { signal: pause.signal }).catch(() => undefined),
      ]);
      pause.abort();
    }
    await pump;
    onFrame(await readFrame(errand, runId, feed));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stop.abort();
    await settled;
  }
}

/** Reads a tree with what it waits for; `feed` knows what its Runs are doing. */
export async function readFrame(errand: Errand, runId: string, feed: RunFeed | null): Promise<TreeFrame> {
  const tree = await errand.tree(runId);
  const ids = new Set<string>([...nodesOf(tree)].map((node) => node.runId));
  const tickets = (await errand.tickets({ rootRunId: tree.rootRunId })).filter((one) => ids.has(one.runId));
  const now = errand.store.now();
  const notes = new Map(feed?.doing);
  let reasons = 0;
  for (const node of nodesOf(tree)) {
    if (reasons >= MAX_REASONS) break;
    const isIdle =
      node.state === "ready" ||
      node.state === "created" ||
      (node.state === "waiting" && node.wait?.on !== "children");
    if (!isIdle || now - node.createdAt < PATIENCE_MS) continue;
    reasons++;
    notes.set(node.runId, (await errand.status(node.runId)).why.replace(/^It /, "").replace(/\.$/, ""));
  }
  return { tree, tickets, notes, now };
}
