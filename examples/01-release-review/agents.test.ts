import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Errand, type RunHandle, type TaskNode, createErrand } from "errand";
import { createMemoryStore } from "errand/memory";
import { createSqliteStore } from "errand/sqlite";
import { describe, expect, it } from "vitest";
import { reviewAgents } from "./agents.ts";
import type { Review, ReviewResult } from "./findings.ts";
import type { ReleaseFolders } from "./tools/release-input.ts";
import { SHIPPED, copyOfShipped, temporaryFolder } from "./tools/testing.ts";

interface Reviewed {
  readonly result: ReviewResult;
  readonly review: Review;
  readonly text: string;
  readonly tree: TaskNode;
}

async function review(folders: ReleaseFolders, look?: Look): Promise<Reviewed> {
  const agent = reviewAgents();
  const out = await temporaryFolder();
  await using errand = await createErrand({ store: createMemoryStore(), agents: [agent] });
  return await reviewWith(errand, agent, folders, out, look);
}

type Look = (errand: Errand, run: RunHandle<ReviewResult>) => Promise<void>;

async function reviewWith(
  errand: Errand,
  agent: ReturnType<typeof reviewAgents>,
  folders: ReleaseFolders,
  out: string,
  look?: Look,
): Promise<Reviewed> {
  const run = await errand.start(agent, { ...folders, out });
  const result = await run.result({ timeoutMs: 30_000 });
  await look?.(errand, run);
  return {
    result,
    review: JSON.parse(await readFile(join(out, "review.json"), "utf8")) as Review,
    text: await readFile(join(out, "review.md"), "utf8"),
    tree: await run.tree(),
  };
}

const shapeOf = (node: TaskNode): unknown => [
  node.agent,
  node.end?.kind,
  node.attempt,
  ...(node.children.length > 0 ? [node.children.map(shapeOf)] : []),
];

const TREE = [
  "review-release",
  "completed",
  1,
  [
    ["api-compatibility", "completed", 1, [["openapi-diff", "completed", 1]]],
    ["data-migration", "completed", 1],
    ["ui-regression", "completed", 1],
  ],
];

describe("the agents of the release review", () => {
  it.each([
    { store: "memory", open: async () => createMemoryStore() },
    { store: "sqlite", open: async () => createSqliteStore(join(await temporaryFolder(), "errand.db")) },
  ])("review the shipped release on the $store store", async ({ open }) => {
    const agent = reviewAgents();
    const out = await temporaryFolder();
    await using errand = await createErrand({ store: await open(), agents: [agent] });
    const { result, review, text, tree } = await reviewWith(errand, agent, SHIPPED, out);

    expect(shapeOf(tree)).toEqual(TREE);
    expect(result).toEqual({ verdict: "hold", summary: review.summary, review: join(out, "review.md") });
    expect(review.api.subject).toBe("Order service 1.8.0 → 2.0.0");
    expect(review.api.clients.map(({ client }) => client)).toEqual(["storefront", "warehouse", "billing"]);
    expect(review.api.unaffected).toEqual(["uptime monitor"]);
    expect(review.migration.status).toBe("passed");
    expect(review.ui.screens.map(({ screen, status }) => [screen, status])).toEqual([
      ["order-detail.png", "same"],
      ["order-list.png", "changed"],
    ]);
    expect(text).toContain("**Verdict: Hold.**");
    expect(text).toContain("Have the finance team change billing first");
  });

  it("delegate the three questions in one batch that runs in parallel (L18)", async () => {
    await review(SHIPPED, async (errand, run) => {
      const facts: unknown[] = [];
      for await (const event of run.stream({ live: false })) {
        if (event.kind === "fact" && event.runId === run.runId && event.fact.type === "step_published")
          facts.push([event.fact.mode, event.fact.calls.map((call) => call.tool)]);
      }
      expect(facts).toEqual([
        ["parallel", ["agent_run", "agent_run", "agent_run"]],
        ["in_order", ["write_review"]],
      ]);
      expect(await errand.effects(run.runId)).toMatchObject([
        { tool: "write_review", effectClass: "idempotent", outcome: "done", executions: 1 },
      ]);
    });
  });

  it("let a release pass that changes nothing", async () => {
    const { before } = await copyOfShipped();
    const { result, review: written } = await review({ before, after: before });
    expect(result.verdict).toBe("release");
    expect(written.actions).toEqual([]);
    expect(result.summary).toBe(
      "No known client is broken by the new API. The migration keeps all data and can be rolled back. No screen looks different.",
    );
  });

  it("spare a client when the change that hits it is taken back", async () => {
    const copy = await copyOfShipped();
    await edit(
      join(copy.after, "openapi.yaml"),
      "required: [orderId, cents, reason]",
      "required: [orderId, cents]",
    );
    const { review: written } = await review(copy);
    expect(written.api.clients.map(({ client }) => client)).toEqual(["storefront", "warehouse"]);
    expect(written.summary).toContain("breaks 2 known clients: storefront, warehouse.");
  });

  it("hold a release whose migration loses data, and name the loss", async () => {
    const { before } = await copyOfShipped();
    const { after } = await copyOfShipped();
    await writeFile(join(after, "openapi.yaml"), await readFile(join(before, "openapi.yaml")));
    const name = join(after, "migrations/0005_drop_phone");
    await writeFile(`${name}.up.sql`, "ALTER TABLE customers DROP COLUMN phone;");
    await writeFile(`${name}.down.sql`, "ALTER TABLE customers ADD COLUMN phone TEXT;");
    const { result, review: written, text } = await review({ before, after });
    expect(result.verdict).toBe("hold");
    expect(written.api.status).toBe("passed");
    expect(written.migration.status).toBe("failed");
    expect(written.migration.destructive).toContainEqual(
      expect.stringContaining("column customers.phone with"),
    );
    expect(text).toContain("The migration does not pass its tests.");
  });

  it("say what could not be checked instead of passing it", async () => {
    const copy = await copyOfShipped();
    await writeFile(join(copy.after, "ui/order-list.png"), "not a picture");
    const { result, review: written } = await review(copy);
    expect(result.verdict).toBe("hold");
    expect(written.ui).toMatchObject({ status: "not_checked", screens: [] });
    expect(written.ui.reason).toContain("is not a PNG file");
    expect(written.actions[0]).toMatch(/^Mend the input and check the screens again: /);
  });
});

async function edit(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, "utf8");
  expect(text).toContain(from);
  await writeFile(file, text.replaceAll(from, to));
}
