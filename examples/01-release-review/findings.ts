import { z } from "zod";

/*
 * The contracts between the agents: what each is given, and what it must hand back to count as done. They hold facts found by
 * tools; opinions appear only in the review.
 */

/** What every agent of this example is asked to look at. */
export const ReleaseToReview = z.object({
  before: z.string().min(1).describe("Absolute path of the folder of the version that runs now"),
  after: z.string().min(1).describe("Absolute path of the folder of the version to release"),
  out: z.string().min(1).describe("Absolute path of the folder that receives evidence and review"),
});
export type ReleaseToReview = z.output<typeof ReleaseToReview>;

/** `not_checked` says that nobody knows; it is never a pass. */
const Status = z.enum(["passed", "failed", "not_checked"]);

const common = {
  status: Status,
  reason: z.string().nullable().describe("Why it could not be checked; null if it was"),
  evidence: z.array(z.string()).describe("Names of the files in the out folder that show it"),
};

export const OpenApiFindings = z.object({
  ...common,
  subject: z.string().describe("Title and versions of the API"),
  diff: z.string().nullable().describe("Name of the file with every difference"),
  compatible: z.number().int().nonnegative().describe("How many differences harm no client"),
  breaking: z.array(z.string()).describe("Differences that can harm a client, a line each"),
});
export type OpenApiFindings = z.output<typeof OpenApiFindings>;

export const ApiFindings = z.object({
  ...common,
  subject: OpenApiFindings.shape.subject,
  compatible: OpenApiFindings.shape.compatible,
  breaking: OpenApiFindings.shape.breaking,
  clients: z
    .array(z.object({ client: z.string(), owner: z.string(), problems: z.array(z.string()) }))
    .describe("Known clients that a breaking difference hits"),
  unaffected: z.array(z.string()).describe("Known clients that nothing hits"),
  unused: z.array(z.string()).describe("Breaking differences that no known client meets"),
});
export type ApiFindings = z.output<typeof ApiFindings>;

const Check = z.object({ check: z.string(), passed: z.boolean(), detail: z.string() });

export const MigrationFindings = z.object({
  ...common,
  forward: z.array(Check).describe("Checks of the forward test"),
  rollback: z.array(Check).describe("Checks of the rollback test"),
  destructive: z.array(z.string()).describe("What is lost and does not come back, a line each"),
});
export type MigrationFindings = z.output<typeof MigrationFindings>;

export const UiFindings = z.object({
  ...common,
  screens: z.array(
    z.object({
      screen: z.string(),
      status: z.enum(["same", "changed", "resized", "added", "removed"]),
      detail: z.string(),
      picture: z.string().nullable().describe("Name of the picture of the change"),
    }),
  ),
});
export type UiFindings = z.output<typeof UiFindings>;

export const Verdict = z.enum(["release", "release_with_care", "hold"]);
export type Verdict = z.output<typeof Verdict>;

export const Review = z.object({
  verdict: Verdict,
  summary: z.string().min(1).describe("Two or three sentences for whoever decides about the release"),
  actions: z.array(z.string()).describe("What to do before or during the release, most urgent first"),
  api: ApiFindings,
  migration: MigrationFindings,
  ui: UiFindings,
});
export type Review = z.output<typeof Review>;

export const ReviewResult = z.object({
  verdict: Verdict,
  summary: z.string(),
  review: z.string().describe("Absolute path of the review"),
});
export type ReviewResult = z.output<typeof ReviewResult>;
