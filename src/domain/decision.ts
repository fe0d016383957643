/** What a decider answers: the facts to commit, or a refusal that changes nothing. */
export type Decision<Fact, Code extends string = string> =
  | { readonly ok: true; readonly facts: readonly Fact[] }
  | { readonly ok: false; readonly code: Code; readonly why: string };

const NOTHING: { readonly ok: true; readonly facts: readonly never[] } = { ok: true, facts: [] };

/** Accepted, and there is nothing new to say: the repeat of what already stands. */
export function unchanged(): { readonly ok: true; readonly facts: readonly never[] } {
  return NOTHING;
}

export function accept<Fact>(...facts: readonly Fact[]): {
  readonly ok: true;
  readonly facts: readonly Fact[];
} {
  return { ok: true, facts };
}

export function refuse<Code extends string>(
  code: Code,
  why: string,
): { readonly ok: false; readonly code: Code; readonly why: string } {
  return { ok: false, code, why };
}
