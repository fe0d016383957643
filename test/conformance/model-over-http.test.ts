import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { LLMock } from "@copilotkit/aimock";
import { modelAgent } from "errand/model";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { watchedContext } from "../../src/testing/move-context.ts";
import { SECRET, agentOn, drive } from "./model-driver.ts";

/*
 * A model agent over real HTTP on the loopback, against a mock of the providers' wire that is not ours, through the
 * providers' own packages. What the runtime would do with the moves is done by a few lines here.
 */

const mock = new LLMock({ port: 0, latency: 0, chunkSize: 8, logLevel: "silent" });

beforeAll(async () => {
  await mock.start();
});
afterAll(async () => {
  await mock.stop();
});
beforeEach(() => {
  mock.reset();
});

const surfaces: readonly { readonly name: string; readonly open: () => LanguageModelV3 }[] = [
  {
    name: "openai-compatible",
    open: () =>
      createOpenAICompatible({
        name: "local",
        baseURL: `${mock.url}/v1`,
        apiKey: SECRET,
        includeUsage: true,
      })("gpt-test"),
  },
  {
    name: "openai chat",
    open: () => createOpenAI({ baseURL: `${mock.url}/v1`, apiKey: SECRET }).chat("gpt-4o"),
  },
  {
    name: "anthropic",
    open: () => createAnthropic({ baseURL: `${mock.url}/v1`, apiKey: SECRET })("claude-sonnet-4-5"),
  },
];

describe.each(surfaces)("over HTTP: $name", ({ name, open }) => {
  test("text streams in pieces and completes, with its usage", async () => {
    mock.onMessage("hello", {
      content: "Hello from the other side of the wire.",
      usage: { prompt_tokens: 50, completion_tokens: 9, input_tokens: 50, output_tokens: 9 },
    });
    const { moves, deltas } = await drive(agentOn(open()), "hello");
    expect(moves).toMatchObject([
      {
        kind: "complete",
        output: "Hello from the other side of the wire.",
        usage: {
          inputTokens: 50,
          outputTokens: 9,
          modelCalls: 1,
          unreportedModelCalls: 0,
          costMicros: 140,
        },
      },
    ]);
    const pieces = deltas.flatMap((delta) => (delta.kind === "text" ? [delta.text] : []));
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toBe("Hello from the other side of the wire.");
  });

  test("parallel calls come as one move, and their answers are understood", async () => {
    mock.on(
      { userMessage: "both", hasToolResult: false },
      {
        toolCalls: [
          { id: "call_a", name: "read_file", arguments: '{"path":"a.txt"}' },
          { id: "call_b", name: "read_file", arguments: '{"path":"b.txt"}' },
        ],
      },
    );
    mock.on({ userMessage: "both", hasToolResult: true }, { content: "Read both." });
    const { moves, history, deltas } = await drive(agentOn(open()), "both");
    expect(moves).toMatchObject([
      {
        kind: "calls",
        calls: [
          { tool: "read_file", input: { path: "a.txt" } },
          { tool: "read_file", input: { path: "b.txt" } },
        ],
      },
      { kind: "complete", output: "Read both." },
    ]);
    const calls = moves[0]?.kind === "calls" ? moves[0].calls : [];
    expect(calls.map((call) => call.providerCallId)).toEqual(["call_a", "call_b"]);
    expect(calls.every((call) => call.answer === undefined)).toBe(true);
    expect(deltas).toContainEqual(expect.objectContaining({ kind: "tool_input", tool: "read_file" }));
    expect(history.map((message) => message.role)).toEqual(["user", "assistant", "tool"]);
    // The answers went over the wire with the ids of their calls.
    const sent = JSON.stringify(mock.getLastRequest()?.body);
    expect(sent).toContain("content of a.txt");
    expect(sent).toContain("call_b");
  });

  test("429 with retry-after is retried when the provider says, and once a move", async () => {
    mock.on(
      { userMessage: "busy", sequenceIndex: 0 },
      { status: 429, retryAfter: 7, error: { message: "slow down", type: "rate_limit_error" } },
    );
    mock.on({ userMessage: "busy", sequenceIndex: 1 }, { content: "Now." });
    const { moves } = await drive(agentOn(open()), "busy");
    expect(moves).toMatchObject([
      { kind: "fail", error: { code: "rate_limited" }, retryable: true, retryAfterMs: 7000, usage: null },
      { kind: "complete", output: "Now." },
    ]);
    expect(mock.getRequests()).toHaveLength(2);
  });

  test("500 is retried, and the provider's package hides no retry of its own", async () => {
    mock.on({ userMessage: "broken" }, { status: 500, error: { message: "oops", type: "server_error" } });
    const { moves } = await drive(agentOn(open()), "broken", 2);
    expect(moves).toMatchObject([
      { kind: "fail", error: { code: "provider_unavailable" }, retryable: true },
      { kind: "fail", error: { code: "provider_unavailable" }, retryable: true },
    ]);
    expect(mock.getRequests()).toHaveLength(2);
  });

  test("a connection that drops inside the text is no answer", async () => {
    mock.on(
      { userMessage: "drop" },
      { content: "This will be cut long before it ends, in the middle." },
      { truncateAfterChunks: 5, latency: 5 },
    );
    const { moves, deltas } = await drive(agentOn(open()), "drop", 1);
    expect(moves).toMatchObject([
      { kind: "fail", error: { code: "stream_incomplete" }, retryable: true, retryAfterMs: null },
    ]);
    expect(moves[0]).toMatchObject({ usage: { modelCalls: 1, unreportedModelCalls: 1 } });
    expect(deltas.some((delta) => delta.kind === "text")).toBe(true);
  });

  test("a connection that drops inside arguments runs nothing", async () => {
    mock.on(
      { userMessage: "drop the call" },
      {
        toolCalls: [
          { id: "call_a", name: "read_file", arguments: '{"path":"a-rather-long-name-that-is-cut.txt"}' },
        ],
      },
      { truncateAfterChunks: 4, latency: 5 },
    );
    const { moves } = await drive(agentOn(open()), "drop the call", 1);
    expect(moves).toMatchObject([{ kind: "fail", error: { code: "stream_incomplete" }, retryable: true }]);
  });

  test("malformed arguments and unknown tools are answered, and the model goes on", async () => {
    mock.on(
      { userMessage: "confused", hasToolResult: false },
      {
        toolCalls: [
          { id: "call_a", name: "read_file", arguments: '{"path": "a.txt' },
          { id: "call_b", name: "erase_disk", arguments: "{}" },
        ],
      },
    );
    mock.on({ userMessage: "confused", hasToolResult: true }, { content: "Sorry." });
    const { moves } = await drive(agentOn(open()), "confused");
    expect(moves).toMatchObject([
      {
        kind: "calls",
        calls: [
          // The mock itself repairs broken arguments on this one wire, into none; the exact bytes are tested below.
          name === "anthropic"
            ? { tool: "read_file", input: {} }
            : { tool: "read_file", answer: { ok: false, error: { code: "invalid_tool_input" } } },
          { tool: "erase_disk", answer: { ok: false, error: { code: "unknown_tool" } } },
        ],
      },
      { kind: "complete", output: "Sorry." },
    ]);
    const sent = JSON.stringify(mock.getLastRequest()?.body);
    expect(sent).toContain("Tools: read_file.");
    expect(sent).toContain(name === "anthropic" ? "invalid_input" : "Nothing was run.");
  });

  test("garbage under status 200 is a failed attempt, not an answer", async () => {
    mock.on({ userMessage: "garbage" }, { content: "never seen" }, { chaos: { malformedRate: 1 } });
    const { moves } = await drive(agentOn(open()), "garbage", 1);
    expect(moves).toMatchObject([{ kind: "fail", retryable: true }]);
    expect(moves[0]?.kind === "fail" && moves[0].error.code).toMatch(/^(empty_turn|response_invalid)$/);
  });

  test("an answer that the token limit cut is refused, and names the limit", async () => {
    mock.on({ userMessage: "long" }, { content: "Once upon a", finishReason: "length" });
    const { moves } = await drive(agentOn(open()), "long");
    expect(moves).toMatchObject([{ kind: "fail", error: { code: "output_truncated" }, retryable: false }]);
    expect(JSON.stringify(moves)).toContain("maxOutputTokens (1000)");
  });

  test.each([
    [401, "invalid key sk-test-0123456789abcdef", "provider_auth"],
    [400, "prompt is too long: 250001 tokens > 200000 maximum", "context_overflow"],
    [400, "unknown parameter", "provider_rejected"],
  ])("%i (%s) ends the run without a repeat and without a secret", async (status, message, code) => {
    mock.on({ userMessage: "no" }, { status, error: { message, type: "invalid_request_error" } });
    const { moves } = await drive(agentOn(open()), "no");
    expect(moves).toMatchObject([{ kind: "fail", error: { code }, retryable: false }]);
    expect(JSON.stringify(moves)).not.toContain(SECRET);
    expect(mock.getRequests()).toHaveLength(1);
  });

  test("nobody at home is retried, and counts no model call", async () => {
    const gone = new LLMock({ port: 0, logLevel: "silent" });
    await gone.start();
    const { url } = gone;
    await gone.stop();
    const model = createOpenAICompatible({ name: "gone", baseURL: `${url}/v1` })("gpt-test");
    const { moves } = await drive(agentOn(model), "hello", 1);
    expect(moves).toMatchObject([
      { kind: "fail", error: { code: "provider_unavailable" }, retryable: true, usage: null },
    ]);
  });

  test("a JSON answer is asked for and parsed", async () => {
    mock.onMessage("judge", { content: '{"verdict":"ok"}' });
    const output = z.object({ verdict: z.enum(["ok", "bad"]) });
    const agent = modelAgent({ name: "judge", instructions: "Judge.", model: open(), output });
    const { moves } = await drive(agent, "judge");
    expect(moves).toMatchObject([{ kind: "complete", output: { verdict: "ok" } }]);
  });

  test("abort closes the request with the signal's reason", async () => {
    mock.onMessage(
      "slow",
      { content: "a very slow answer indeed" },
      { streamingProfile: { ttft: 20, tps: 1 } },
    );
    const agent = agentOn(open());
    const control = new AbortController();
    const reason = new Error("canceled by a person");
    const session = agent.open();
    const context = watchedContext(agent, { input: "slow", emit: () => control.abort(reason) });
    const history = session.prompt(context);
    await expect(session.next({ ...context, history }, control.signal)).rejects.toBe(reason);
  });
});
