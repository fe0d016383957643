import { ErrandError } from "../../domain/errand-error.ts";
import { parseDelegationId, parsePublicationRef, parseRunId, parseTicketId } from "../../domain/id.ts";
import type { Errand } from "../library/errand.ts";
import { nearest } from "./nearest.ts";

export type IdKind = "run" | "delegation" | "ticket" | "publication";

const PARSERS: readonly (readonly [IdKind, (text: string) => unknown])[] = [
  ["run", parseRunId],
  ["ticket", parseTicketId],
  ["delegation", parseDelegationId],
  ["publication", parsePublicationRef],
];

/** What kind of thing an id names by its form, or null when it has the form of none. */
export function idKind(text: string): IdKind | null {
  for (const [kind, parse] of PARSERS) {
    try {
      parse(text);
      return kind;
    } catch {
      continue;
    }
  }
  return null;
}

/** Does something with an id of one of the kinds; when there is no such thing, the error names the id that was likely meant. */
export async function withId<T>(
  errand: Errand,
  id: string,
  kinds: readonly IdKind[],
  work: (kind: IdKind) => Promise<T>,
): Promise<T> {
  const kind = idKind(id);
  try {
    if (kind === null || !kinds.includes(kind)) throw unknownId(id, kinds);
    return await work(kind);
  } catch (error) {
    if (!ErrandError.is(error) || error.code !== "NOT_FOUND") throw error;
    const meant = nearest(id, await candidates(errand, kinds));
    if (meant === null || meant === id) throw error;
    const what = error.message.slice("[NOT_FOUND] ".length, -error.fix.length - 1);
    throw new ErrandError("NOT_FOUND", what, `Did you mean ${meant}?`, { cause: error });
  }
}

function unknownId(id: string, kinds: readonly IdKind[]): ErrandError {
  return new ErrandError(
    "NOT_FOUND",
    `${JSON.stringify(id)} is not the id of a ${kinds.join(", ").replace(/, ([^,]*)$/, " or $1")}.`,
    "`errand ps --all` lists runs, `errand tickets` what waits for a person, `errand agents` publications.",
  );
}

const RECENT = 500;

async function candidates(errand: Errand, kinds: readonly IdKind[]): Promise<readonly string[]> {
  const ids: string[] = [];
  if (kinds.includes("run") || kinds.includes("delegation")) {
    for (const run of await errand.list({ limit: RECENT })) {
      if (kinds.includes("run")) ids.push(run.runId);
      if (kinds.includes("delegation") && run.delegationId !== null) ids.push(run.delegationId);
    }
  }
  if (kinds.includes("ticket")) ids.push(...(await errand.tickets({ all: true })).map((one) => one.ticketId));
  if (kinds.includes("publication")) {
    ids.push(...(await errand.store.listPublications(errand.tenant)).flatMap((one) => [one.ref, one.name]));
  }
  return ids;
}
