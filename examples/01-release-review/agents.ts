import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { AgentDefinition } from "errand";
import { modelAgent } from "errand/model";
import { checkClients, compareUi, diffApis, testForward, testRollback, writeReview } from "./agent-tools.ts";
import {
  ApiFindings,
  MigrationFindings,
  OpenApiFindings,
  ReleaseToReview,
  ReviewResult,
  UiFindings,
} from "./findings.ts";
import { apiPlanner, diffPlanner, migrationPlanner, rootPlanner, uiPlanner } from "./planners.ts";

export interface AgentSettings {
  /** A provider's model for every agent; null plans with the planners of this example, which need no key. */
  readonly model?: LanguageModelV3 | null;
  /** Slows the planners down, for watching. */
  readonly paceMs?: number;
}

const HONESTY =
  "Report only what the tools answered, word for word where you can. If a tool or an agent fails, report status not_checked with its reason and leave lists empty; never guess.";

/**
 * The agents of a release review, as the root of their tree:
 *
 *     review-release
 *     ├── api-compatibility
 *     │   └── openapi-diff
 *     ├── data-migration
 *     └── ui-regression
 */
export function reviewAgents(settings: AgentSettings = {}): AgentDefinition<ReleaseToReview, ReviewResult> {
  const { model = null, paceMs = 0 } = settings;
  const pace = { paceMs };

  const openApiDiff = modelAgent({
    name: "openapi-diff",
    description: "Lists every difference between two OpenAPI descriptions.",
    instructions: `Call diff_openapi once with your input and report what it found. Status is passed if nothing is breaking, else failed. Evidence is the diff's file name. ${HONESTY}`,
    model: model ?? diffPlanner(pace),
    input: ReleaseToReview,
    output: OpenApiFindings,
    tools: [diffApis],
    maxSteps: 8,
  });

  const apiCompatibility = modelAgent({
    name: "api-compatibility",
    description: "Finds out which known clients a new version of the API breaks.",
    instructions: `Delegate the comparison to openapi-diff with your own input, then call check_client_impact with the diff's file name. Status is failed if a client is hit, else passed. Take subject, compatible, breaking and evidence from the comparison. ${HONESTY}`,
    model: model ?? apiPlanner(pace),
    input: ReleaseToReview,
    output: ApiFindings,
    tools: [checkClients],
    roster: [openApiDiff],
    maxSteps: 12,
  });

  const dataMigration = modelAgent({
    name: "data-migration",
    description: "Tests a database migration forward and back on a real database with data in it.",
    instructions: `Call forward_test and rollback_test with your input, both in one turn. Status is passed only if both passed. Destructive is the union of both lists, evidence both file names. ${HONESTY}`,
    model: model ?? migrationPlanner(pace),
    input: ReleaseToReview,
    output: MigrationFindings,
    tools: [testForward, testRollback],
    maxSteps: 8,
  });

  const uiRegression = modelAgent({
    name: "ui-regression",
    description: "Compares the screens of two versions pixel by pixel.",
    instructions: `Call compare_screens once with your input. Status is passed if every screen is same or added, else failed. Evidence is every picture's name. ${HONESTY}`,
    model: model ?? uiPlanner(pace),
    input: ReleaseToReview,
    output: UiFindings,
    tools: [compareUi],
    maxSteps: 8,
  });

  return modelAgent({
    name: "review-release",
    description: "Reviews a release: API, data and screens, with a verdict and what to do.",
    instructions: `You review a release for the person who decides about it. In your first turn delegate to api-compatibility, data-migration and ui-regression, all three at once, each with your own input as its input. When they are back, call write_review with their findings as they are, a verdict, a summary of two or three sentences and the actions to take, most urgent first: name clients, owners, checks and screens. The verdict is hold if a known client breaks, data is at risk, a screen is gone or something was not checked; release_with_care if screens changed or unknown clients may break; else release. Then answer with the verdict, the summary and the review's path. ${HONESTY}`,
    model: model ?? rootPlanner(pace),
    input: ReleaseToReview,
    output: ReviewResult,
    tools: [writeReview],
    roster: [apiCompatibility, dataMigration, uiRegression],
    maxSteps: 16,
  });
}
