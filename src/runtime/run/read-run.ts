import type { RunId, TenantId } from "../../domain/id.ts";
import type { LogRow, Store } from "../ports/store.ts";
import { LoadedRun } from "./loaded-run.ts";

const PAGE = 500;

/** Reads a Run from its thread's log: a cold load, once a claim. Undefined if there is no such Run. */
export async function readRun(store: Store, tenant: TenantId, runId: RunId): Promise<LoadedRun | undefined> {
  const row = await store.getRun(tenant, runId);
  if (row === null) return undefined;
  const rows: LogRow[] = [];
  for (let after = 0; ; ) {
    const page = await store.readLog(tenant, { threadId: row.threadId }, after, PAGE);
    rows.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.seq;
  }
  return LoadedRun.fold(runId, rows);
}
