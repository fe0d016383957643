import type { TenantId } from "../../domain/id.ts";
import type { RunRow, Store } from "../ports/store.ts";
import { isErased } from "../ports/erasure.ts";
import { agentOf, hasLimits } from "../ports/running-limits.ts";
import { decodeSummary } from "../run/run-summary.ts";

/** Why a Run is not running, in one sentence that is true at the moment of asking. */
export async function whyWaiting(store: Store, tenant: TenantId, row: RunRow): Promise<string> {
  const now = store.now();
  const wait = decodeSummary(row.summary).wait;
  switch (row.state) {
    case "running":
      return `It is running under ${row.claimedBy ?? "a worker"}.`;
    case "ended":
      return isErased(row.summary) ? "It has ended; its content was erased." : "It has ended.";
    case "paused":
      return "It is paused; `continue` lets it go on.";
    case "created":
      if (!row.lane) return `It queues behind another run of ${row.threadId}.`;
      return row.dueAt === null
        ? "It has not been started yet."
        : `It starts in ${Math.max(0, row.dueAt - now)} ms.`;
    case "ready":
      return whyUnclaimed(store, tenant, row, now);
    case "awaiting":
      return wait?.on === "ticket"
        ? `It awaits an answer to ${wait.ticketId} (${wait.ticketKind}).`
        : "It awaits an answer.";
    case "waiting":
      break;
    default:
      row.state satisfies never;
  }
  const inMs = row.dueAt === null ? null : Math.max(0, row.dueAt - now);
  switch (wait?.on) {
    case "children":
      return `It waits for ${wait.delegationIds.length === 1 ? "a child" : `${wait.delegationIds.length} children`}: ${wait.delegationIds.join(", ")}.`;
    case "timer":
      return `It sleeps${inMs === null ? "" : ` for another ${inMs} ms`}.`;
    case "peer":
      return `It is carried by a peer (${wait.detail})${inMs === null ? "" : `; the next poll is in ${inMs} ms`}.`;
    case "retry":
      return `Attempt ${wait.attempt} begins in ${inMs ?? 0} ms.`;
    case "ticket":
    case "continue":
    case undefined:
      return "It waits.";
    default:
      return wait satisfies never;
  }
}

async function whyUnclaimed(store: Store, tenant: TenantId, row: RunRow, now: number): Promise<string> {
  if (row.dueAt !== null && row.dueAt > now) return `It is due in ${row.dueAt - now} ms.`;
  const workers = (await store.listWorkers(tenant)).filter((worker) => !worker.dead);
  if (workers.length === 0) return "It is ready, but no worker is alive: start one with `errand worker`.";
  const full = await fullLimit(store, tenant, row);
  if (full !== null) return full;
  const carriers = workers.filter((worker) => worker.publications.includes(row.publication));
  return carriers.length === 0
    ? `It is ready, but none of the ${workers.length} live workers has loaded ${row.publication}: start a worker with that agent.`
    : `It is ready and waits for a free slot on one of ${carriers.length} workers.`;
}

/** The limit that keeps a ready Run from running, if one does. */
async function fullLimit(store: Store, tenant: TenantId, row: RunRow): Promise<string | null> {
  const limits = await store.operations.getLimits(tenant);
  if (!hasLimits(limits)) return null;
  const running = await store.operations.countRunning(tenant, row.rootRunId);
  const agent = agentOf(row.publication);
  const agentLimit = Object.hasOwn(limits.agents, agent) ? limits.agents[agent] : undefined;
  const all = [
    ["the tenant", running.tenant, limits.tenant],
    [`agent ${agent}`, running.agents[agent] ?? 0, agentLimit ?? null],
    [`its tree (${row.rootRunId})`, running.tree, limits.tree],
  ] as const;
  for (const [of, runs, limit] of all) {
    if (limit === null || runs < limit) continue;
    return limit === 0
      ? `It is ready, but the limit of ${of} is 0: nothing begins until it is raised (\`errand limits\`).`
      : `It is ready and waits for the limit of ${of}: ${runs} of ${limit} run.`;
  }
  return null;
}
