import type { Effect, Errand, RunEnd } from "errand";
import { effectLedger } from "../../src/domain/effect/effect-ledger.ts";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import { decodeFacts } from "../../src/runtime/run/loaded-run.ts";
import type { OutsideEffect } from "./effect-counter.ts";
import { type Outcome, type Plan, sizeOf } from "./fleet-plan.ts";

const PAGE = 500;

/** A tree that has ended. */
export interface FleetTree {
  readonly key: string;
  readonly plan: Plan;
  readonly runId: string;
  readonly end: RunEnd;
}

/** What was looked at, as numbers. */
export interface FleetFigures {
  readonly trees: number;
  readonly runs: number;
  readonly logEntries: number;
  /** Effects of each kind, and the requests for them: what exceeds the effects of `post` and `look` was repeated. */
  readonly effects: number;
  readonly requests: number;
  readonly payments: number;
  /** Calls that may never be repeated and of which nobody knows whether they happened. */
  readonly unknown: number;
}

export interface FleetVerdict {
  readonly figures: FleetFigures;
  readonly problems: readonly string[];
}

/** What the log says of one Run. */
interface Told {
  readonly runId: string;
  readonly rootRunId: string;
  readonly facts: RunFact[];
}

/** Holds what a fleet has left behind against its trees' plans, the laws and the outside process. */
export async function judgeFleet(
  errand: Errand,
  trees: readonly FleetTree[],
  outside: readonly OutsideEffect[],
): Promise<FleetVerdict> {
  const runs = await readRuns(errand);
  const effects = [...runs.values()].flatMap(({ runId, facts }) => [...effectLedger(runId, facts)]);
  const verified = await errand.verify();
  const of = (tool: string): readonly OutsideEffect[] => outside.filter((effect) => effect.tool === tool);
  return {
    figures: {
      trees: trees.length,
      runs: runs.size,
      logEntries: verified.entries,
      effects: outside.length,
      requests: outside.reduce((sum, { requests }) => sum + requests, 0),
      payments: of("pay").length,
      unknown: effects.filter(({ outcome }) => outcome === "unknown").length,
    },
    problems: [
      ...treeProblems(trees, runs, effects),
      ...[...runs.values()].flatMap((run) => runProblems(run, runs)),
      ...effectProblems(effects, outside),
      ...verified.problems.map((problem) => `errand verify: ${JSON.stringify(problem)}`),
    ],
  };
}

async function readRuns(errand: Errand): Promise<ReadonlyMap<string, Told>> {
  const runs = new Map<string, Told>();
  for (let after = 0; ; ) {
    const rows = await errand.store.readLog(errand.tenant, { all: true }, after, PAGE);
    for (const { runId, rootRunId, body } of rows) {
      const run = runs.get(runId) ?? { runId, rootRunId, facts: [] };
      run.facts.push(...decodeFacts(body));
      runs.set(runId, run);
    }
    const last = rows.at(-1);
    if (last === undefined) return runs;
    after = last.seq;
  }
}

/** Each tree has completed with what its plan asks for, and has as many Runs and no more. */
function treeProblems(
  trees: readonly FleetTree[],
  runs: ReadonlyMap<string, Told>,
  effects: readonly Effect[],
): string[] {
  const count = (of: Iterable<string>): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const root of of) counts.set(root, (counts.get(root) ?? 0) + 1);
    return counts;
  };
  const rootOf = (key: string): string => runs.get(key.slice(0, key.indexOf(":")))?.rootRunId ?? "";
  const runsOf = count([...runs.values()].map(({ rootRunId }) => rootRunId));
  const unknownOf = count(
    effects.filter(({ outcome }) => outcome === "unknown").map(({ key }) => rootOf(key)),
  );
  const problems = trees.flatMap(({ key, plan, runId, end }) => {
    if (end.kind !== "completed") return [`${key} ${runId} is ${JSON.stringify(end)}`];
    const size = sizeOf(plan);
    const unknown = unknownOf.get(runId) ?? 0;
    const wanted: Outcome = { runs: size.runs, done: size.calls - unknown, unknown };
    const found = end.output as unknown as Outcome;
    const isSame = (["runs", "done", "unknown"] as const).every((name) => wanted[name] === found[name]);
    if (isSame && runsOf.get(runId) === size.runs) return [];
    const story = `${JSON.stringify(found)} with ${runsOf.get(runId)} Runs`;
    return [`${key} ${runId} came to ${story}, not ${JSON.stringify(wanted)}`];
  });
  const known = new Set(trees.map(({ runId }) => runId));
  const strays = [...runsOf.keys()].filter((root) => !known.has(root));
  return [...problems, ...strays.map((root) => `${root} is a tree that nobody started`)];
}

/** One end a Run; one child a delegating call, which exists and knows its parent (L14). */
function runProblems({ runId, facts }: Told, runs: ReadonlyMap<string, Told>): string[] {
  const problems: string[] = [];
  const ends = facts.filter(({ type }) => type === "run_ended").length;
  if (ends !== 1) problems.push(`${runId} has ${ends} ends`);
  const opened = facts.flatMap((fact) => (fact.type === "delegation_opened" ? [fact] : []));
  const calls = new Set(opened.map(({ step, index }) => `${step}.${index}`));
  if (calls.size !== opened.length) problems.push(`${runId} opened a call's delegation twice`);
  for (const { childRunId } of opened) {
    const created = runs.get(childRunId)?.facts.find((fact) => fact.type === "run_created");
    const parent = created?.type === "run_created" ? created.header.origin?.parentRunId : undefined;
    if (parent !== runId)
      problems.push(`${runId} opened ${childRunId}, whose parent is ${parent ?? "nobody"}`);
  }
  return problems;
}

/** What may never be repeated was asked for once at most; what is done has happened; nothing else has (L10). */
function effectProblems(effects: readonly Effect[], outside: readonly OutsideEffect[]): string[] {
  const counted = new Map(outside.map((effect) => [effect.key, effect]));
  const problems: string[] = [];
  for (const { key, tool, outcome } of effects) {
    const requests = counted.get(key)?.requests ?? 0;
    counted.delete(key);
    if (tool === "pay" && requests > 1) problems.push(`${key}: ${tool} was asked for ${requests} times`);
    if (outcome === "done" && requests === 0) problems.push(`${key}: ${tool} is done, but nothing happened`);
    if (outcome !== "done" && (tool !== "pay" || outcome !== "unknown"))
      problems.push(`${key}: ${tool} is ${outcome}`);
  }
  return [
    ...problems,
    ...[...counted.values()].map(({ key, tool }) => `${tool} happened under ${key}, which no call has`),
  ];
}
