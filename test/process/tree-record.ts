import { type Errand, type TaskNode, createErrand } from "errand";
import { createSqliteStore } from "errand/sqlite";
import { canonicalJson } from "../../src/rules/canonical-json.ts";
import type { Json } from "../../src/rules/json.ts";
import { verifyStore } from "../../src/runtime/verify/verify-store.ts";
import { decodeFacts } from "../../src/runtime/run/loaded-run.ts";

/** What is on record about one Run. */
export interface RunRecord {
  readonly runId: string;
  /** Agents from the root down: the Run's place in the tree, whatever its id. */
  readonly place: string;
  readonly end: string;
  readonly attempt: number;
  /** The thread's whole history, canonical, a message a line. */
  readonly history: string;
  /** Child that each delegating call has opened, in order: `step.index run`. One line a relationship. */
  readonly delegations: readonly string[];
  readonly children: readonly string[];
  readonly effects: readonly { readonly key: string; readonly tool: string; readonly outcome: string }[];
  /** Calls whose outcome nobody knows. */
  readonly unknownCalls: number;
}

/** Reads a whole tree from the file, in a fixed order, without carrying any of it. */
export async function recordTree(storePath: string, rootRunId: string): Promise<readonly RunRecord[]> {
  await using errand = await createErrand({ store: createSqliteStore(storePath), agents: [], worker: false });
  const records: RunRecord[] = [];
  const walk = async (node: TaskNode, above: string): Promise<void> => {
    const place = above === "" ? node.agent : `${above}/${node.agent}`;
    records.push(await recordRun(errand, node, place));
    for (const child of node.children) await walk(child, place);
  };
  await walk(await errand.tree(rootRunId), "");
  return records.toSorted((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0));
}

/** Ids of the Runs of a tree that are on record. */
export async function listRunIds(storePath: string, rootRunId: string): Promise<readonly string[]> {
  await using errand = await createErrand({ store: createSqliteStore(storePath), agents: [], worker: false });
  const runs = await errand.list({ limit: 10_000 });
  return runs.filter((run) => run.rootRunId === rootRunId).map(({ runId }) => runId);
}

/** What `errand verify` has to say about the file: rows that its log does not account for, and the like (L2). */
export async function verifyFile(storePath: string): Promise<readonly string[]> {
  await using errand = await createErrand({ store: createSqliteStore(storePath), agents: [], worker: false });
  const { problems } = await verifyStore(errand.store, errand.tenant);
  return problems.map((problem) => `errand verify: ${JSON.stringify(problem)}`);
}

async function recordRun(errand: Errand, node: TaskNode, place: string): Promise<RunRecord> {
  const { runId } = node;
  const facts = (await errand.log(runId)).flatMap((row) => decodeFacts(row.body));
  const history = await errand.history(runId);
  return {
    runId,
    place,
    end: node.end?.kind ?? node.state,
    attempt: node.attempt,
    history: history.map((message) => canonicalJson(message as unknown as Json)).join("\n"),
    delegations: facts.flatMap((fact) =>
      fact.type === "delegation_opened" ? [`${fact.step}.${fact.index} ${fact.childRunId}`] : [],
    ),
    children: node.children.map((child) => child.runId),
    effects: (await errand.effects(runId)).map(({ key, tool, outcome }) => ({ key, tool, outcome })),
    unknownCalls: facts.filter((fact) => fact.type === "call_indeterminate").length,
  };
}
