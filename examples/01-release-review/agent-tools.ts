import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ToolFailure, defineTool } from "errand";
import { z } from "zod";
import {
  type ApiFindings,
  type MigrationFindings,
  ReleaseToReview,
  Review,
  type UiFindings,
} from "./findings.ts";
import { reviewDocument } from "./review-document.ts";
import type { ApiChange } from "./tools/api-change.ts";
import { clientImpact } from "./tools/client-impact.ts";
import {
  type MigrationTestResult,
  describeDestructiveChange,
  forwardTest,
  rollbackTest,
} from "./tools/migration-check.ts";
import { childOf, rootOf } from "./tools/openapi-document.ts";
import type { OpenApiDocument } from "./tools/openapi-document.ts";
import { diffOpenApi } from "./tools/openapi-diff.ts";
import { writeResult } from "./tools/output-folder.ts";
import { type ScreenResult, compareScreens } from "./tools/pixel-diff.ts";
import { readApi, readClients, readMigrations, readScreens } from "./tools/release-input.ts";
import { isTooMild, mildestVerdict } from "./verdict.ts";

/*
 * The tools as agents see them. Those that write do so under fixed names in the `out` folder, whole files at a time, and the
 * same input gives the same bytes: so they are `idempotent`, and a call that a crash interrupted is simply made again.
 */

/** A process that dies is not the tool's fault, so recovery may begin a call often. */
const maxExecutions = 100;

const DIFF_FILE = "openapi-diff.json";

export const diffApis = defineTool({
  name: "diff_openapi",
  description: "Compares the OpenAPI descriptions of both versions and writes every difference to a file.",
  input: ReleaseToReview,
  replay: "idempotent",
  effect: "idempotent",
  maxExecutions,
  async run({ before, after, out }, context, signal) {
    context.progress("reading both descriptions");
    const api = await readApi({ before, after }, signal);
    const changes = diffOpenApi(api.before, api.after);
    context.progress(`${changes.length} differences`);
    await writeResult(out, DIFF_FILE, `${JSON.stringify(changes, null, 2)}\n`);
    const breaking = changes.filter((change) => change.breaking);
    return {
      subject: subjectOf(api.before, api.after),
      diff: DIFF_FILE,
      compatible: changes.length - breaking.length,
      breaking: breaking.map(describeChange),
    };
  },
});

export const checkClients = defineTool({
  name: "check_client_impact",
  description: "Finds the known clients that the breaking differences of an OpenAPI comparison hit.",
  input: z.object({
    before: ReleaseToReview.shape.before,
    out: ReleaseToReview.shape.out,
    diff: z.string().describe("Name of the file with the differences, as the comparison gave it"),
  }),
  replay: "safe",
  effect: "read_only",
  maxExecutions,
  async run({ before, out, diff }, context, signal) {
    const clients = await readClients({ before, after: before }, signal);
    context.progress(`${clients.length} known clients`);
    const changes = await readChanges(join(out, basename(diff)));
    const impact = clientImpact(changes, clients);
    const hit = new Map<string, { client: string; owner: string; problems: string[] }>();
    for (const { client, owner, change } of impact.hits) {
      const entry = hit.get(client) ?? { client, owner, problems: [] };
      entry.problems.push(describeChange(change));
      hit.set(client, entry);
    }
    return {
      clients: [...hit.values()],
      unaffected: [...impact.unaffectedClients],
      unused: impact.unusedBreakingChanges.map(describeChange),
    } satisfies Partial<ApiFindings>;
  },
});

export const testForward = defineTool({
  name: "forward_test",
  description:
    "Migrates a real SQLite database with data in it forward, and checks that nothing is lost and that the running version still works on it.",
  input: ReleaseToReview,
  replay: "idempotent",
  effect: "idempotent",
  maxExecutions,
  parallel: true,
  async run(folders, context, signal) {
    context.progress("migrating a database with data");
    const input = await readMigrations(folders, signal);
    return migrationAnswer(await forwardTest(input, { outDir: folders.out, signal }), "forward-test.json");
  },
});

export const testRollback = defineTool({
  name: "rollback_test",
  description:
    "Migrates a real SQLite database with data in it forward and back again, and checks that schema and data are what they were, also after the new version has written.",
  input: ReleaseToReview,
  replay: "idempotent",
  effect: "idempotent",
  maxExecutions,
  parallel: true,
  async run(folders, context, signal) {
    context.progress("migrating forward and back again");
    const input = await readMigrations(folders, signal);
    return migrationAnswer(await rollbackTest(input, { outDir: folders.out, signal }), "rollback-test.json");
  },
});

export const compareUi = defineTool({
  name: "compare_screens",
  description:
    "Compares the screenshots of both versions pixel by pixel and draws a picture of every change.",
  input: ReleaseToReview,
  replay: "idempotent",
  effect: "idempotent",
  maxExecutions,
  async run({ before, after, out }, context, signal) {
    const screens = await readScreens({ before, after }, signal);
    context.progress(`${Object.keys(screens.before).length} screens`);
    const comparison = await compareScreens(screens.before, screens.after, { outDir: out, signal });
    return { screens: comparison.screens.map(describeScreen) } satisfies Partial<UiFindings>;
  },
});

export const writeReview = defineTool({
  name: "write_review",
  description:
    "Writes the review for people (review.md) and for programs (review.json). Refuses a verdict that is milder than the findings allow.",
  input: Review.extend({ out: ReleaseToReview.shape.out }),
  replay: "idempotent",
  effect: "idempotent",
  maxExecutions,
  async run({ out, ...review }, context) {
    if (isTooMild(review.verdict, review)) {
      throw new ToolFailure(
        "verdict_too_mild",
        `The findings allow "${mildestVerdict(review)}" at best, not "${review.verdict}". Read them again, then write the review.`,
      );
    }
    // review.json names the call that wrote it and comes last, so with it the review is whole.
    await writeResult(out, "review.md", reviewDocument(review));
    const record = { effectKey: context.effectKey, ...review };
    await writeResult(out, "review.json", `${JSON.stringify(record, null, 2)}\n`);
    return { review: join(out, "review.md") };
  },
});

function migrationAnswer(result: MigrationTestResult, file: string): MigrationTestAnswer {
  return {
    passed: result.passed,
    checks: result.checks.map(({ name, passed, detail }) => ({ check: name, passed, detail })),
    destructive: result.destructive.map(describeDestructiveChange),
    evidence: file,
  };
}

export interface MigrationTestAnswer {
  readonly passed: boolean;
  readonly checks: MigrationFindings["forward"];
  readonly destructive: string[];
  readonly evidence: string;
}

/** `GET /orders, query limit: maximum was 500 and is 100…` */
function describeChange({ method, path, subject, why }: ApiChange): string {
  const operation = method === undefined ? path : `${method.toUpperCase()} ${path}`;
  switch (subject.part) {
    case "operation":
      return `${operation}: ${why}`;
    case "parameter":
      return `${operation}, ${subject.in} parameter ${subject.name}: ${why}`;
    case "request":
      return `${operation}, request ${subject.field || "body"}: ${why}`;
    case "response":
      return `${operation}, response ${subject.status} ${subject.field || "body"}: ${why}`;
    default:
      return subject satisfies never;
  }
}

function describeScreen(result: ScreenResult): UiFindings["screens"][number] {
  const { screen, status } = result;
  switch (status) {
    case "same":
      return { screen, status, detail: "looks the same", picture: null };
    case "changed": {
      const { changedPixels, ratio, box, diffFile } = result;
      const share = (ratio * 100).toFixed(2);
      const detail = `${changedPixels} pixels (${share} %) changed, within ${box.width} × ${box.height} at ${box.x}, ${box.y}`;
      return { screen, status, detail, picture: diffFile };
    }
    case "resized": {
      const { before, after } = result;
      const detail = `was ${before.width} × ${before.height} and is ${after.width} × ${after.height}`;
      return { screen, status, detail, picture: null };
    }
    case "added":
      return { screen, status, detail: "is new", picture: null };
    case "removed":
      return { screen, status, detail: "is gone", picture: null };
    default:
      return result satisfies never;
  }
}

/** `Orders API 1.8.0 → 2.0.0` */
function subjectOf(before: OpenApiDocument, after: OpenApiDocument): string {
  const info = (document: OpenApiDocument, field: string): string => {
    const found = childOf(rootOf(document), "info");
    const value = found && childOf(found, field)?.value;
    return typeof value === "string" ? value : `(no ${field})`;
  };
  return `${info(after, "title")} ${info(before, "version")} → ${info(after, "version")}`;
}

async function readChanges(file: string): Promise<readonly ApiChange[]> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as readonly ApiChange[];
  } catch (cause) {
    throw new ToolFailure("no_diff", `${file} cannot be read: compare the APIs first.`, { cause });
  }
}
