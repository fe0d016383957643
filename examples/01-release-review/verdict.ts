import type { ApiFindings, MigrationFindings, UiFindings, Verdict } from "./findings.ts";

export interface Findings {
  readonly api: ApiFindings;
  readonly migration: MigrationFindings;
  readonly ui: UiFindings;
}

const STRICTNESS: Readonly<Record<Verdict, number>> = { release: 0, release_with_care: 1, hold: 2 };

/** The mildest verdict that the findings leave open. Whoever writes the review may be stricter, never milder. */
export function mildestVerdict({ api, migration, ui }: Findings): Verdict {
  const unknown = [api, migration, ui].some(({ status }) => status === "not_checked");
  const removed = ui.screens.some(({ status }) => status === "removed");
  if (unknown || removed || api.clients.length > 0) return "hold";
  if (migration.status === "failed" || migration.destructive.length > 0) return "hold";
  return api.unused.length > 0 || ui.status === "failed" ? "release_with_care" : "release";
}

export function isTooMild(verdict: Verdict, findings: Findings): boolean {
  return STRICTNESS[verdict] < STRICTNESS[mildestVerdict(findings)];
}

export function verdictText(verdict: Verdict): string {
  switch (verdict) {
    case "release":
      return "Release";
    case "release_with_care":
      return "Release with care";
    case "hold":
      return "Hold";
    default:
      return verdict satisfies never;
  }
}
