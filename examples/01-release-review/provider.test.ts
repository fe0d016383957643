import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { type ChatCompletionRequest, type FixtureResponse, LLMock } from "@copilotkit/aimock";
import { createErrand } from "errand";
import { createMemoryStore } from "errand/memory";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { reviewAgents } from "./agents.ts";
import type { Review } from "./findings.ts";
import { chooseModel } from "./model-choice.ts";
import { apiPlanner, diffPlanner, migrationPlanner, rootPlanner, uiPlanner } from "./planners.ts";
import { SHIPPED, temporaryFolder } from "./tools/testing.ts";

/*
 * The review planned by a provider's model: through the provider's own package, over HTTP, against a mock of the provider's
 * wire that is not ours. What the model behind it says comes from the planners.
 */

const mock = new LLMock({ port: 0, latency: 0, chunkSize: 64, logLevel: "silent" });
beforeAll(async () => {
  await mock.start();
  mock.on({ predicate: () => true }, answer);
});
afterAll(() => mock.stop());
afterEach(() => {
  vi.unstubAllEnvs();
});

const pace = { paceMs: 0 };
/** Which planner stands behind a request, by a tool that only its agent has. */
const PLANNERS = {
  write_review: rootPlanner(pace),
  check_client_impact: apiPlanner(pace),
  diff_openapi: diffPlanner(pace),
  forward_test: migrationPlanner(pace),
  compare_screens: uiPlanner(pace),
};

describe.each([
  { provider: "openai", key: "OPENAI_API_KEY", url: "OPENAI_BASE_URL" },
  { provider: "anthropic", key: "ANTHROPIC_API_KEY", url: "ANTHROPIC_BASE_URL" },
])("a review planned through $provider", ({ provider, key, url }) => {
  it("comes to the verdict of the tools", async () => {
    vi.stubEnv(key, "key-of-a-test");
    vi.stubEnv(url, `${mock.url}/v1`);
    const { model } = await chooseModel(provider, process.env);
    const agent = reviewAgents({ model });
    const out = await temporaryFolder();
    await using errand = await createErrand({ store: createMemoryStore(), agents: [agent] });
    const run = await errand.start(agent, { ...SHIPPED, out });
    expect((await run.result({ timeoutMs: 30_000 })).verdict).toBe("hold");
    const review = JSON.parse(await readFile(join(out, "review.json"), "utf8")) as Review;
    expect(review.api.clients.map(({ client }) => client)).toEqual(["storefront", "warehouse", "billing"]);
    expect(review.migration.status).toBe("passed");
  });
});

async function answer(request: ChatCompletionRequest): Promise<FixtureResponse> {
  const offered = (request.tools ?? []).map((tool) => tool.function.name);
  const found = Object.entries(PLANNERS).find(([tool]) => offered.includes(tool));
  if (found === undefined) throw new Error(`no planner for ${offered.join(", ")}`);
  const { content } = await found[1].doGenerate({ prompt: promptOf(request) });
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const toolCalls = content.flatMap((part) =>
    part.type === "tool-call" ? [{ name: part.toolName, arguments: part.input }] : [],
  );
  return toolCalls.length === 0 ? { content: texts.join("") } : { content: texts.join(""), toolCalls };
}

/** The request as a planner sees it; calls and answers find each other by the id that the mock gave the call. */
function promptOf({ messages }: ChatCompletionRequest): LanguageModelV3Prompt {
  const names = new Map<string, string>();
  const prompt: LanguageModelV3Prompt = [];
  for (const { role, content, tool_calls = [], tool_call_id = "" } of messages) {
    const text =
      typeof content === "string"
        ? content
        : (content ?? []).map((part) => ("text" in part ? part.text : "")).join("");
    if (role === "user") prompt.push({ role, content: [{ type: "text", text }] });
    if (role === "assistant") {
      for (const call of tool_calls) names.set(call.id, call.function.name);
      prompt.push({ role, content: [{ type: "text", text }] });
    }
    if (role !== "tool") continue;
    const part = {
      type: "tool-result" as const,
      toolCallId: tool_call_id,
      toolName: names.get(tool_call_id) ?? "",
      output: { type: "json" as const, value: JSON.parse(text) as never },
    };
    const last = prompt.at(-1);
    if (last?.role === "tool") last.content.push(part);
    else prompt.push({ role, content: [part] });
  }
  return prompt;
}
