import type { Commit } from "../../src/runtime/ports/store.ts";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";

type FactType = RunFact["type"];

/** Facts of a Run in log order, each with the commit that wrote it. */
export async function factsOf(
  errand: Errand,
  runId: string,
): Promise<readonly (RunFact & { readonly seq: number; readonly source: "lane" | "signal" })[]> {
  const rows = await errand.log(runId);
  return rows.flatMap(({ seq, source, body }) =>
    (JSON.parse(body) as readonly RunFact[]).map((fact) => ({ ...fact, seq, source })),
  );
}

export async function factTypes(errand: Errand, runId: string): Promise<readonly FactType[]> {
  return (await factsOf(errand, runId)).map((fact) => fact.type);
}

/** The facts of one type. */
export async function factsOfType<Type extends FactType>(
  errand: Errand,
  runId: string,
  type: Type,
): Promise<readonly (RunFact & { readonly type: Type; readonly seq: number })[]> {
  const facts = await factsOf(errand, runId);
  return facts.filter(
    (fact): fact is RunFact & { type: Type; seq: number; source: "lane" } => fact.type === type,
  );
}

/** Facts that a commit's lane writes. */
export function laneFacts(commit: Commit): readonly RunFact[] {
  return commit.lane === null ? [] : (JSON.parse(commit.lane.body) as readonly RunFact[]);
}

export function writes(commit: Commit, type: FactType): boolean {
  return laneFacts(commit).some((fact) => fact.type === type);
}
