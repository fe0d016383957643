import type { DelegationId, RunId, TenantId } from "../../domain/id.ts";
import type { RunFact } from "../../domain/run/run-fact.ts";
import type { Clock } from "../../runtime/ports/clock.ts";
import { existingRun } from "../../runtime/host/control-run.ts";
import type { LiveBus, LiveDelta } from "../../runtime/ports/live-bus.ts";
import type { Store } from "../../runtime/ports/store.ts";
import { decodeFacts } from "../../runtime/run/loaded-run.ts";
import { ChangeWatch } from "./change-watch.ts";

interface Tags {
  readonly rootRunId: RunId;
  readonly parentRunId: RunId | null;
  readonly runId: RunId;
  readonly agent: string;
  readonly delegationId: DelegationId | null;
  /** The parent's call that caused the Run, as `step.index`; null for a root. */
  readonly parentCall: string | null;
}

/** What a stream yields: committed facts, which can be read again from any `seq`, and live deltas, which cannot. */
export type StreamEvent =
  | (Tags & { readonly kind: "fact"; readonly seq: number; readonly at: number; readonly fact: RunFact })
  | (Omit<Tags, "agent"> & { readonly kind: "live"; readonly delta: LiveDelta });

export interface StreamOptions {
  /** Facts after this `seq` only; 0 (default) from the beginning. */
  readonly after?: number;
  /** Also yield live deltas of this process; default true. */
  readonly live?: boolean;
  /** Go on until the Run has ended; default true. Otherwise the stream ends when what is committed has been read. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
}

const PAGE = 500;
/** Live deltas that wait for a slow reader; the oldest are dropped beyond it. */
const MAX_BUFFERED = 10_000;

/** Facts and live deltas of a whole tree, until the Run that was asked for has ended and everything is read. */
export async function* streamTree(
  parts: {
    readonly store: Store;
    readonly bus: LiveBus;
    readonly clock: Clock;
    readonly tenant: TenantId;
    readonly pollMs: number;
  },
  runId: RunId,
  options: StreamOptions,
): AsyncGenerator<StreamEvent, void, void> {
  const { store, tenant } = parts;
  const { rootRunId } = await existingRun(store, tenant, runId);
  const wholeTree = rootRunId === runId;
  const tags = new Map<RunId, Tags>();
  const live: StreamEvent[] = [];
  const watch = new ChangeWatch(store, tenant, parts.clock, parts.pollMs);
  const unsubscribe =
    options.live === false
      ? () => undefined
      : parts.bus.subscribe((tagged) => {
          if (tagged.tenant !== tenant || tagged.rootRunId !== rootRunId) return;
          const { tenant: _, delta, ...from } = tagged;
          live.push({ kind: "live", ...from, delta });
          if (live.length > MAX_BUFFERED) live.shift();
          watch.poke();
        });
  try {
    let after = options.after ?? 0;
    const inside = new Set<RunId>([runId]);
    for (;;) {
      options.signal?.throwIfAborted();
      const ended = (await store.getRun(tenant, runId))?.state === "ended";
      for (;;) {
        const rows = await store.readLog(tenant, { rootRunId }, after, PAGE);
        for (const entry of rows) {
          after = entry.seq;
          const of = await tagsOf(store, tenant, entry.runId, tags);
          if (of.parentRunId !== null && inside.has(of.parentRunId)) inside.add(entry.runId);
          if (!wholeTree && !inside.has(entry.runId)) continue;
          for (const fact of decodeFacts(entry.body))
            yield { kind: "fact", ...of, seq: entry.seq, at: entry.at, fact };
        }
        if (rows.length < PAGE) break;
      }
      for (const event of live.splice(0)) if (wholeTree || inside.has(event.runId)) yield event;
      if (ended || options.follow === false) return;
      await watch.next(options.signal);
    }
  } finally {
    unsubscribe();
    watch.close();
  }
}

async function tagsOf(store: Store, tenant: TenantId, runId: RunId, known: Map<RunId, Tags>): Promise<Tags> {
  const before = known.get(runId);
  if (before !== undefined) return before;
  const row = await store.getRun(tenant, runId);
  const delegationId = row?.delegationId ?? null;
  const delegation = delegationId === null ? null : await store.getDelegation(tenant, delegationId);
  const tags: Tags = {
    rootRunId: row?.rootRunId ?? runId,
    parentRunId: row?.parentRunId ?? null,
    runId,
    agent: row?.agent ?? "",
    delegationId,
    parentCall: delegation === null ? null : `${delegation.step}.${delegation.index}`,
  };
  known.set(runId, tags);
  return tags;
}
