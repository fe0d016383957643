import type { OutsideEffect } from "./effect-counter.ts";
import { PAGE_ON_CALL, POST_NOTICE } from "./kill-agents.ts";
import type { RunRecord } from "./tree-record.ts";

export interface Evidence {
  /** The job that nobody killed. */
  readonly reference: readonly RunRecord[];
  readonly referenceReview: string;
  /** The job that was killed, after it ended. */
  readonly records: readonly RunRecord[];
  readonly review: string;
  readonly outside: readonly OutsideEffect[];
  /** Runs of this job that were on record when some worker was killed. */
  readonly seen: ReadonlySet<string>;
}

/** What was looked at, as numbers. */
export interface KillFigures {
  readonly runs: number;
  readonly idempotentEffects: number;
  /** Requests that the outside process got for them: what exceeds the effects were repeats, which it told apart by key. */
  readonly idempotentRequests: number;
  readonly neverEffects: number;
  /** Calls of the tool that may never be repeated which ended `Indeterminate`. */
  readonly unknownCalls: number;
  readonly historiesCompared: number;
}

/** What is wrong with what a killed job left behind, by the laws and beside a job that nobody killed. Pure. */
export function findProblems({ reference, records, outside, seen, ...reviews }: Evidence): readonly string[] {
  const left = new Set(records.map(({ runId }) => runId));
  return [
    ...shapeProblems(reference, records),
    ...[...seen].flatMap((runId) =>
      left.has(runId) ? [] : [`${runId} was there before a kill and is gone`],
    ),
    ...delegationProblems(records),
    ...effectProblems(records, outside),
    ...historyProblems(reference, comparable(records)),
    ...(reviews.review === reviews.referenceReview
      ? []
      : ["review.md differs from that of the unkilled job"]),
  ];
}

export function figuresOf({ records, outside }: Evidence): KillFigures {
  const of = (wanted: string): readonly OutsideEffect[] => outside.filter(({ tool }) => tool === wanted);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
  return {
    runs: records.length,
    idempotentEffects: of(POST_NOTICE).length,
    idempotentRequests: sum(of(POST_NOTICE).map(({ requests }) => requests)),
    neverEffects: of(PAGE_ON_CALL).length,
    unknownCalls: sum(records.map(({ unknownCalls }) => unknownCalls)),
    historiesCompared: comparable(records).length,
  };
}

/** The same Runs in the same places, all completed, none in a second attempt (K6.1). */
function shapeProblems(reference: readonly RunRecord[], records: readonly RunRecord[]): string[] {
  const shape = (all: readonly RunRecord[]): string =>
    all.map(({ place, end, attempt }) => `${place} ${end} ${attempt}`).join(", ");
  const [wanted, found] = [shape(reference), shape(records)];
  return wanted === found ? [] : [`the tree is ${found}; unkilled it is ${wanted}`];
}

/** One child a delegating call, and no other child (L14). */
function delegationProblems(records: readonly RunRecord[]): string[] {
  return records.flatMap(({ runId, delegations, children }) => {
    const opened = delegations.map((line) => line.split(" ")[1] ?? "");
    const calls = new Set(delegations.map((line) => line.split(" ")[0]));
    const problems: string[] = [];
    if (calls.size !== delegations.length) problems.push(`${runId} opened a call's delegation twice`);
    if (opened.toSorted().join() !== children.toSorted().join()) {
      problems.push(`${runId} opened ${opened.join()} and has the children ${children.join()}`);
    }
    return problems;
  });
}

/** Each effect happened once, under its call's one key, or its call says that nobody knows (L10). */
function effectProblems(records: readonly RunRecord[], outside: readonly OutsideEffect[]): string[] {
  const counted = new Map(outside.map((effect) => [effect.key, effect]));
  const problems: string[] = [];
  for (const { place, effects } of records) {
    for (const { key, tool, outcome } of effects) {
      if (outcome === "started") problems.push(`${place}: ${tool} has begun and has no end`);
      if (tool !== POST_NOTICE && tool !== PAGE_ON_CALL) {
        if (outcome !== "done") problems.push(`${place}: ${tool} is replay-safe, and yet ${outcome}`);
        continue;
      }
      const requests = counted.get(key)?.requests ?? 0;
      counted.delete(key);
      if (tool === PAGE_ON_CALL && requests > 1) {
        problems.push(`${place}: ${tool} may never be repeated and was, ${requests} times`);
      }
      if (tool === POST_NOTICE && outcome !== "done") problems.push(`${place}: ${tool} is ${outcome}`);
      if (outcome === "done" && requests === 0)
        problems.push(`${place}: ${tool} is done, but nothing happened`);
    }
  }
  for (const { key, tool } of counted.values())
    problems.push(`${tool} happened under ${key}, which no call has`);
  return problems;
}

/** Runs whose history no unknown outcome has reached: those that do not lie between such a call and the root (L9). */
function comparable(records: readonly RunRecord[]): readonly RunRecord[] {
  const unsure = records.filter(({ unknownCalls }) => unknownCalls > 0).map(({ place }) => place);
  return records.filter(({ place }) => !unsure.some((one) => one === place || one.startsWith(`${place}/`)));
}

function historyProblems(reference: readonly RunRecord[], compared: readonly RunRecord[]): string[] {
  const wanted = new Map(reference.map(({ place, history }) => [place, history]));
  return compared.flatMap(({ place, history }) => {
    if (history === wanted.get(place)) return [];
    const lines = [history.split("\n"), (wanted.get(place) ?? "").split("\n")] as const;
    const at = lines[0].findIndex((line, index) => line !== lines[1][index]);
    return [
      `the history of ${place} differs at message ${at}:\n  ${lines[0][at] ?? "(none)"}\n  ${lines[1][at] ?? "(none)"}`,
    ];
  });
}
