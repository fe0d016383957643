import type { Json } from "errand";
import type { ScriptedModel } from "errand/model";
import type { MigrationTestAnswer } from "./agent-tools.ts";
import {
  ApiFindings,
  MigrationFindings,
  OpenApiFindings,
  ReleaseToReview,
  type Review,
  UiFindings,
} from "./findings.ts";
import { type Answer, type Pace, type Plan, planner } from "./planner-view.ts";
import { type Findings, mildestVerdict } from "./verdict.ts";

/*
 * What a language model would do in each agent's place, written down. Nothing about a release stands in here: every finding is
 * read from the answers of the tools, and another release gets another review.
 */

export function rootPlanner(pace: Pace): ScriptedModel {
  return planner("plan-review", pace, (talk): Plan => {
    const task = talk.task(ReleaseToReview);
    if (talk.answer("agent_run") === null) {
      return {
        say: "Three independent questions: clients, data and screens. I have them looked into at the same time.",
        calls: [
          delegate("api-compatibility", "Find out which known clients the new API breaks", task),
          delegate("data-migration", "Show that the migration keeps all data, forward and back", task),
          delegate("ui-regression", "Find every screen that looks different", task),
        ],
      };
    }
    const findings: Findings = {
      api: readFindings(talk.answer("agent_run", 0), ApiFindings, noApiFindings),
      migration: readFindings(talk.answer("agent_run", 1), MigrationFindings, noMigrationFindings),
      ui: readFindings(talk.answer("agent_run", 2), UiFindings, noUiFindings),
    };
    const verdict = mildestVerdict(findings);
    const summary = summaryOf(findings);
    const written = talk.answer("write_review");
    if (written === null) {
      const review: Review = { verdict, summary, actions: actionsOf(findings), ...findings };
      return {
        say: "All three are back. I write the review.",
        calls: [{ tool: "write_review", input: { ...review, out: task.out } }],
      };
    }
    if (!written.ok) throw new Error(`The review could not be written: ${written.reason}`);
    return { result: { verdict, summary, ...(written.value as { review: string }) } };
  });
}

export function apiPlanner(pace: Pace): ScriptedModel {
  return planner("plan-api-compatibility", pace, (talk): Plan => {
    const task = talk.task(ReleaseToReview);
    const compared = talk.answer("agent_run");
    if (compared === null) {
      return {
        say: "First the facts: what is different between the two descriptions?",
        calls: [delegate("openapi-diff", "List every difference between the two API descriptions", task)],
      };
    }
    if (!compared.ok) return { result: noApiFindings(compared.reason) };
    const { status, reason, subject, compatible, breaking, diff, evidence } = OpenApiFindings.parse(
      compared.value,
    );
    const known = { subject, compatible, breaking, evidence };
    if (status === "not_checked" || diff === null) {
      return { result: { ...noApiFindings(reason ?? "there is no comparison"), ...known } };
    }
    const impact = talk.answer("check_client_impact");
    if (impact === null) {
      return {
        say: `${breaking.length} differences can break a client. Which of our clients do they meet?`,
        calls: [{ tool: "check_client_impact", input: { before: task.before, out: task.out, diff } }],
      };
    }
    if (!impact.ok) return { result: { ...noApiFindings(impact.reason), ...known } };
    const found = impact.value as Pick<ApiFindings, "clients" | "unaffected" | "unused">;
    const passed = found.clients.length === 0;
    return { result: { status: passed ? "passed" : "failed", reason: null, ...known, ...found } };
  });
}

export function diffPlanner(pace: Pace): ScriptedModel {
  return planner("plan-openapi-diff", pace, (talk): Plan => {
    const task = talk.task(ReleaseToReview);
    const compared = talk.answer("diff_openapi");
    if (compared === null) {
      return { say: "I compare both descriptions.", calls: [{ tool: "diff_openapi", input: task }] };
    }
    if (!compared.ok) {
      const nothing = { subject: "unknown", diff: null, compatible: 0, breaking: [], evidence: [] };
      return { result: { status: "not_checked", reason: compared.reason, ...nothing } };
    }
    const found = compared.value as Pick<OpenApiFindings, "subject" | "compatible" | "breaking"> & {
      readonly diff: string;
    };
    const status = found.breaking.length === 0 ? "passed" : "failed";
    return { result: { status, reason: null, ...found, evidence: [found.diff] } };
  });
}

export function migrationPlanner(pace: Pace): ScriptedModel {
  return planner("plan-data-migration", pace, (talk): Plan => {
    const task = talk.task(ReleaseToReview);
    const [forward, rollback] = [talk.answer("forward_test"), talk.answer("rollback_test")];
    if (forward === null || rollback === null) {
      return {
        say: "I migrate a database with data in it: forward, and in a second copy forward and back.",
        calls: [
          { tool: "forward_test", input: task },
          { tool: "rollback_test", input: task },
        ],
      };
    }
    const failure = [forward, rollback].find((one) => !one.ok);
    if (failure !== undefined && !failure.ok) return { result: noMigrationFindings(failure.reason) };
    const [there, back] = [forward, rollback].map(testAnswer) as [MigrationTestAnswer, MigrationTestAnswer];
    const passed = there.passed && back.passed;
    return {
      result: {
        status: passed ? "passed" : "failed",
        reason: null,
        forward: there.checks,
        rollback: back.checks,
        destructive: [...new Set([...there.destructive, ...back.destructive])],
        evidence: [there.evidence, back.evidence],
      },
    };
  });
}

export function uiPlanner(pace: Pace): ScriptedModel {
  return planner("plan-ui-regression", pace, (talk): Plan => {
    const compared = talk.answer("compare_screens");
    if (compared === null) {
      const input = talk.task(ReleaseToReview);
      return { say: "I compare every screen, pixel by pixel.", calls: [{ tool: "compare_screens", input }] };
    }
    if (!compared.ok) return { result: noUiFindings(compared.reason) };
    const { screens } = compared.value as Pick<UiFindings, "screens">;
    const passed = screens.every(({ status }) => status === "same" || status === "added");
    const evidence = screens.flatMap(({ picture }) => (picture === null ? [] : [picture]));
    return { result: { status: passed ? "passed" : "failed", reason: null, screens, evidence } };
  });
}

function delegate(agent: string, goal: string, input: ReleaseToReview): { tool: string; input: Json } {
  return { tool: "agent_run", input: { agent, goal, input } };
}

function testAnswer(answer: Answer): MigrationTestAnswer {
  return (answer.ok ? answer.value : null) as unknown as MigrationTestAnswer;
}

/** What a child found, or why there is nothing: a child that failed has not passed anything. */
function readFindings<Found>(
  answer: Answer | null,
  schema: { parse(value: unknown): Found },
  none: (reason: string) => Found,
): Found {
  if (answer === null) return none("it was not looked into");
  return answer.ok ? schema.parse(answer.value) : none(answer.reason);
}

function noApiFindings(reason: string): ApiFindings {
  const nothing = { compatible: 0, breaking: [], clients: [], unaffected: [], unused: [] };
  return { status: "not_checked", reason, evidence: [], subject: "unknown", ...nothing };
}

function noMigrationFindings(reason: string): MigrationFindings {
  return { status: "not_checked", reason, evidence: [], forward: [], rollback: [], destructive: [] };
}

function noUiFindings(reason: string): UiFindings {
  return { status: "not_checked", reason, evidence: [], screens: [] };
}

function summaryOf({ api, migration, ui }: Findings): string {
  const changed = ui.screens.filter(({ status }) => status !== "same" && status !== "added");
  return [
    api.status === "not_checked"
      ? "The API could not be compared."
      : api.clients.length > 0
        ? `The new API breaks ${counted(api.clients.length, "known client")}: ${api.clients.map(({ client }) => client).join(", ")}.`
        : `No known client is broken by the new API${api.unused.length > 0 ? `, though ${counted(api.unused.length, "difference")} could break one we do not know` : ""}.`,
    migration.status === "not_checked"
      ? "The migration could not be tested."
      : migration.status === "passed"
        ? "The migration keeps all data and can be rolled back."
        : "The migration does not pass its tests.",
    ui.status === "not_checked"
      ? "The screens could not be compared."
      : changed.length === 0
        ? "No screen looks different."
        : `${changed.length} of ${counted(ui.screens.length, "screen")} ${changed.length === 1 ? "looks" : "look"} different.`,
  ].join(" ");
}

function actionsOf({ api, migration, ui }: Findings): string[] {
  const checkAgain = [
    ["API", api],
    ["migration", migration],
    ["screens", ui],
  ] as const;
  return [
    ...checkAgain.flatMap(([what, { reason }]) =>
      reason === null ? [] : [`Mend the input and check the ${what} again: ${reason}`],
    ),
    ...[...migration.forward, ...migration.rollback]
      .filter((check) => !check.passed && !check.detail.startsWith("not reached"))
      .map(({ check, detail }) => `Correct the migration (${check}): ${detail}`),
    ...api.clients.map(
      ({ client, owner, problems }) => `Have the ${owner} change ${client} first: ${problems.join("; ")}`,
    ),
    ...ui.screens.flatMap(({ screen, status, detail, picture }) => {
      if (status === "same" || status === "added") return [];
      const look = picture === null ? "" : `, see ${picture}`;
      return [`Confirm that ${screen} is meant to look different (${detail})${look}`];
    }),
    ...(api.unused.length === 0
      ? []
      : [
          `Announce ${counted(api.unused.length, "breaking difference")} that no known client meets, for clients that nobody listed`,
        ]),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
