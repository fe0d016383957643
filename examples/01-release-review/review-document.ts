import type { ApiFindings, MigrationFindings, Review, UiFindings } from "./findings.ts";
import { verdictText } from "./verdict.ts";

const MARK = { passed: "✅", failed: "❌", not_checked: "❔" } as const;

/** The review as Markdown. The same review always gives the same text. */
export function reviewDocument({ verdict, summary, actions, api, migration, ui }: Review): string {
  return [
    `# Release review: ${api.subject}`,
    "",
    `**Verdict: ${verdictText(verdict)}.** ${summary}`,
    "",
    "| | Area | Result |",
    "| --- | --- | --- |",
    `| ${MARK[api.status]} | API compatibility | ${cell(apiResult(api))} |`,
    `| ${MARK[migration.status]} | Data migration | ${cell(migrationResult(migration))} |`,
    `| ${MARK[ui.status]} | User interface | ${cell(uiResult(ui))} |`,
    "",
    "## To do",
    "",
    ...(actions.length === 0
      ? ["Nothing."]
      : actions.map((action, index) => `${index + 1}. ${line(action)}`)),
    "",
    ...apiSection(api),
    ...migrationSection(migration),
    ...uiSection(ui),
    "## Evidence",
    "",
    ...[...api.evidence, ...migration.evidence, ...ui.evidence].map(
      (file) => `- [${line(file)}](${encodeURI(file)})`,
    ),
    "",
  ].join("\n");
}

function apiSection(api: ApiFindings): string[] {
  return [
    "## API compatibility",
    "",
    ...notChecked(api),
    ...api.clients.flatMap(({ client, owner, problems }) => [
      `**${line(client)}** (${line(owner)}) is hit by:`,
      "",
      ...problems.map((problem) => `- ${line(problem)}`),
      "",
    ]),
    ...(api.unaffected.length === 0 ? [] : [`Not affected: ${api.unaffected.map(line).join(", ")}.`, ""]),
    ...(api.unused.length === 0
      ? []
      : [
          "Breaking, but no known client meets it:",
          "",
          ...api.unused.map((change) => `- ${line(change)}`),
          "",
        ]),
  ];
}

function migrationSection(migration: MigrationFindings): string[] {
  const table = (title: string, checks: MigrationFindings["forward"]): string[] =>
    checks.length === 0
      ? []
      : [
          `| | ${title} | |`,
          "| --- | --- | --- |",
          ...checks.map(
            ({ check, passed, detail }) =>
              `| ${MARK[passed ? "passed" : "failed"]} | ${cell(check.replaceAll("_", " "))} | ${cell(detail)} |`,
          ),
          "",
        ];
  return [
    "## Data migration",
    "",
    ...notChecked(migration),
    ...migration.destructive.map((loss) => `- ⚠️ ${line(loss)}`),
    ...(migration.destructive.length === 0 ? [] : [""]),
    ...table("Forward", migration.forward),
    ...table("Rollback", migration.rollback),
  ];
}

function uiSection(ui: UiFindings): string[] {
  return [
    "## User interface",
    "",
    ...notChecked(ui),
    ...ui.screens.map(({ screen, status, detail }) => {
      const fine = status === "same" || status === "added";
      return `- ${MARK[fine ? "passed" : "failed"]} ${line(screen)} ${line(detail)}`;
    }),
    "",
    ...ui.screens.flatMap(({ screen, picture }) =>
      picture === null ? [] : [`![What changed in ${line(screen)}](${encodeURI(picture)})`, ""],
    ),
  ];
}

function apiResult(api: ApiFindings): string {
  if (api.status === "not_checked") return "not checked";
  return `${api.breaking.length} breaking differences, ${api.compatible} compatible; ${api.clients.length} known clients hit, ${api.unaffected.length} not`;
}

function migrationResult(migration: MigrationFindings): string {
  if (migration.status === "not_checked") return "not checked";
  const checks = [...migration.forward, ...migration.rollback];
  const passed = checks.filter((check) => check.passed).length;
  const losses = migration.destructive.length;
  return `${passed} of ${checks.length} checks passed; ${losses === 0 ? "nothing is lost" : `${losses} destructive changes`}`;
}

function uiResult(ui: UiFindings): string {
  if (ui.status === "not_checked") return "not checked";
  const same = ui.screens.filter(({ status }) => status === "same").length;
  return `${same} of ${ui.screens.length} screens look the same`;
}

function notChecked({ reason }: { readonly reason: string | null }): string[] {
  return reason === null ? [] : [`Not checked: ${line(reason)}`, ""];
}

/** Text from outside on one line, so that it cannot end the paragraph that it stands in. */
function line(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[<>]/g, (sign) => (sign === "<" ? "&lt;" : "&gt;"));
}

function cell(text: string): string {
  return line(text).replaceAll("|", "\\|");
}
