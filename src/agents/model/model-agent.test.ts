import { APICallError } from "@ai-sdk/provider";
import type { LanguageModelV3, LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { Contract } from "../../domain/contract/contract.ts";
import { DEFAULT_LIMITS } from "../../domain/delegation/limits.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Move, MoveContext } from "../../runtime/ports/carrier.ts";
import type { LiveDelta } from "../../runtime/ports/live-bus.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import { type ModelAgentOptions, type ScriptedTurn, failTimes, modelAgent, scriptedModel } from "./index.ts";

const NOW = Date.UTC(2026, 0, 1);

function tool(name: string, extra: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `does ${name}`,
    inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    replay: "never",
    effect: "none",
    parallel: true,
    timeoutMs: 1000,
    maxExecutions: 1,
    approval: () => false,
    mayNeedApproval: false,
    approvalPrompt: () => "",
    parse: (value) => ({ ok: true, value }),
    run: () => Promise.resolve({ ok: true, value: null }),
    ...extra,
  };
}

interface Watched extends MoveContext {
  readonly deltas: LiveDelta[];
  readonly warnings: string[];
}

function contextOf(agent: AgentDefinition, extra: Partial<MoveContext> = {}): Watched {
  const deltas: LiveDelta[] = [];
  const warnings: string[] = [];
  const header = {
    origin: null,
    agent: agent.name,
    outputSchema: agent.outputSchema,
    limits: DEFAULT_LIMITS,
  } as unknown as RunHeader;
  return {
    header,
    attempt: 1,
    input: "look at it",
    history: [{ role: "user", content: [{ type: "text", text: "look at it" }] }],
    journal: [],
    note: null,
    answer: undefined,
    stepsTaken: 0,
    now: NOW,
    emit: (delta) => void deltas.push(delta),
    warn: (message) => void warnings.push(message),
    deltas,
    warnings,
    ...extra,
  };
}

const INSTRUCTIONS = "You review releases.";

function agentWith(turn: ScriptedTurn, extra: Partial<ModelAgentOptions> = {}): AgentDefinition {
  return modelAgent({
    name: "reviewer",
    instructions: INSTRUCTIONS,
    model: scriptedModel([turn]),
    tools: [tool("read_file"), tool("list_files")],
    ...extra,
  });
}

async function moveOf(agent: AgentDefinition, context = contextOf(agent)): Promise<Move> {
  return agent.open().next(context, new AbortController().signal);
}

async function failOf(turn: ScriptedTurn, extra: Partial<ModelAgentOptions> = {}) {
  const move = await moveOf(agentWith(turn, extra));
  if (move.kind !== "fail") throw new Error(`expected a failure, got ${JSON.stringify(move)}`);
  return move;
}

/** A model that only remembers its request and then answers "ok". */
function recording(): { model: LanguageModelV3; requests: LanguageModelV3CallOptions[] } {
  const requests: LanguageModelV3CallOptions[] = [];
  const inner = scriptedModel(() => '{"verdict":"ok"}');
  return {
    requests,
    model: {
      ...inner,
      doStream: (request) => {
        requests.push(request);
        return inner.doStream(request);
      },
    },
  };
}

describe("a turn", () => {
  test("that is text completes the run, and its pieces are emitted live", async () => {
    const agent = agentWith({ text: "All is well, ship it.", reasoning: "Hm, let me see.", chunks: 3 });
    const context = contextOf(agent);
    expect(await moveOf(agent, context)).toEqual({
      kind: "complete",
      output: "All is well, ship it.",
      message: { role: "assistant", content: [{ type: "text", text: "All is well, ship it." }] },
      usage: {
        inputTokens: 100,
        outputTokens: 20,
        modelCalls: 1,
        unreportedModelCalls: 0,
        toolCalls: 0,
        costMicros: 0,
      },
    });
    const text = context.deltas.flatMap((delta) => (delta.kind === "text" ? [delta.text] : []));
    expect(text).toHaveLength(3);
    expect(text.join("")).toBe("All is well, ship it.");
    expect(context.deltas.some((delta) => delta.kind === "reasoning")).toBe(true);
  });

  test("with calls becomes one move with all of them, and the message that carries them", async () => {
    const agent = agentWith({
      text: "I look at both.",
      reasoning: "two files",
      calls: [
        { tool: "read_file", input: { path: "a" } },
        { tool: "read_file", input: { path: "b" } },
      ],
    });
    const context = contextOf(agent);
    const move = await moveOf(agent, context);
    expect(move).toMatchObject({
      kind: "calls",
      calls: [
        { tool: "read_file", input: { path: "a" }, providerCallId: "call_0_0" },
        { tool: "read_file", input: { path: "b" }, providerCallId: "call_0_1" },
      ],
    });
    expect(move.kind === "calls" && move.message).toEqual({
      role: "assistant",
      content: [
        { type: "reasoning", text: "two files" },
        { type: "text", text: "I look at both." },
        { type: "tool-call", toolCallId: "call_0_0", toolName: "read_file", input: { path: "a" } },
        { type: "tool-call", toolCallId: "call_0_1", toolName: "read_file", input: { path: "b" } },
      ],
    });
    expect(context.deltas.filter((delta) => delta.kind === "tool_input").at(0)).toMatchObject({
      tool: "read_file",
    });
  });

  test("with broken arguments answers the call and goes on", async () => {
    const move = await moveOf(agentWith({ calls: [{ tool: "read_file", rawInput: '{"path": "a' }] }));
    expect(move).toMatchObject({
      kind: "calls",
      calls: [
        {
          input: { malformedArguments: '{"path": "a' },
          answer: { ok: false, error: { code: "invalid_tool_input" } },
        },
      ],
    });
    const message = JSON.stringify(move);
    expect(message).toMatch(/Unterminated string|JSON/);
    expect(message).toContain('\\"required\\":[\\"path\\"]');
  });

  test.each([["[1,2]"], ['"text"'], ["null"]])(
    "with arguments %s, no object, is answered",
    async (rawInput) => {
      expect(await moveOf(agentWith({ calls: [{ tool: "read_file", rawInput }] }))).toMatchObject({
        calls: [{ answer: { ok: false, error: { code: "invalid_tool_input" } } }],
      });
    },
  );

  test("with no arguments at all means an empty object", async () => {
    const move = await moveOf(agentWith({ calls: [{ tool: "list_files", rawInput: "" }] }));
    expect(move).toMatchObject({ calls: [{ input: {} }] });
    expect(move.kind === "calls" && move.calls[0]?.answer).toBeUndefined();
  });

  test("that calls an unknown tool hears which there are", async () => {
    const move = await moveOf(agentWith({ calls: [{ tool: "delete_all", input: {} }] }));
    expect(move).toMatchObject({ calls: [{ answer: { ok: false, error: { code: "unknown_tool" } } }] });
    expect(JSON.stringify(move)).toContain("Tools: read_file, list_files.");
  });

  test.each([
    ["agent_run", { agent: "x" }, '"goal" must be'],
    ["ask", { prompt: " " }, '"prompt" must be'],
    ["ask", { prompt: "Sure?", schema: "string" }, '"schema" must be'],
    ["ask", { prompt: "Sure?", schema: { $ref: "#/nowhere" } }, '"schema" is no JSON Schema'],
  ])("that calls %s with %j is answered", async (name, input, said) => {
    const turn = { calls: [{ tool: name, input }] };
    const move = await moveOf(agentWith(turn, { roster: [agentWith("")], mayAsk: true }));
    expect(move).toMatchObject({ calls: [{ answer: { error: { code: "invalid_tool_input" } } }] });
    expect(move.kind === "calls" && move.calls[0]?.answer).toMatchObject({
      error: { message: expect.stringContaining(said) },
    });
  });

  test("with missing or repeated call ids gets ids of its own, the same in message and calls", async () => {
    const calls = [
      { tool: "list_files", id: "" },
      { tool: "list_files", id: "x" },
      { tool: "list_files", id: "x" },
    ];
    const move = await moveOf(agentWith({ calls }));
    if (move.kind !== "calls") throw new Error("expected calls");
    expect(move.calls.map((call) => call.providerCallId)).toEqual(["call_0_0", "x", "call_0_2"]);
    expect(JSON.stringify(move.message)).toContain('"toolCallId":"call_0_2"');
  });

  test.each([
    [{ text: "half an ans", finish: "none" }, "stream_incomplete", true],
    [{ calls: [{ tool: "read_file", rawInput: '{"pa' }], finish: "none" }, "stream_incomplete", true],
    [{ text: "half an ans", breakAfter: 3 }, "stream_incomplete", true],
    [{ finish: "none" }, "empty_turn", true],
    [{ finish: "other" }, "empty_turn", true],
    [{ finish: "stop" }, "empty_turn", true],
    [{ text: "  \n", finish: "stop" }, "empty_turn", true],
    [{ text: "I must not", finish: "content-filter" }, "content_filtered", false],
    [{ text: "a long sto", finish: "length" }, "output_truncated", false],
    [{ calls: [{ tool: "read_file", rawInput: '{"pa' }], finish: "length" }, "output_truncated", false],
    [{ text: "oops", finish: "error" }, "provider_unavailable", true],
  ] as const)("%j fails as %s", async (turn, code, retryable) => {
    expect(await failOf(turn)).toMatchObject({ error: { code }, retryable, retryAfterMs: null });
  });

  test("that is cut by length keeps its complete calls", async () => {
    const turn = { calls: [{ tool: "read_file", input: { path: "a" } }], finish: "length" } as const;
    expect(await moveOf(agentWith(turn))).toMatchObject({ kind: "calls" });
  });

  test("that is cut by length names the limit", async () => {
    const fail = await failOf({ text: "a long sto", finish: "length" }, { maxOutputTokens: 77 });
    expect(fail.error.message).toContain("maxOutputTokens (77)");
  });

  test("keeps what a provider said about a part, and gives it back as options", async () => {
    const signed = { anthropic: { signature: "s1g" } };
    const inner = scriptedModel(["unused"]);
    const model: LanguageModelV3 = {
      ...inner,
      doStream: () =>
        Promise.resolve({
          stream: new ReadableStream({
            start(controller) {
              controller.enqueue({ type: "reasoning-start", id: "0" });
              controller.enqueue({ type: "reasoning-delta", id: "0", delta: "think" });
              controller.enqueue({ type: "reasoning-delta", id: "0", delta: "", providerMetadata: signed });
              controller.enqueue({ type: "reasoning-end", id: "0" });
              controller.enqueue({ type: "text-start", id: "0" });
              controller.enqueue({ type: "text-delta", id: "0", delta: "done" });
              controller.enqueue({ type: "text-end", id: "0" });
              controller.enqueue({
                type: "finish",
                finishReason: { unified: "stop", raw: "end_turn" },
                // As an older provider reports it.
                usage: { inputTokens: 7, outputTokens: 3 } as never,
              });
              controller.close();
            },
          }),
        }),
    };
    expect(await moveOf(agentWith("", { model }))).toMatchObject({
      kind: "complete",
      output: "done",
      message: {
        role: "assistant",
        content: [
          { type: "reasoning", text: "think", providerOptions: signed },
          { type: "text", text: "done" },
        ],
      },
      usage: { inputTokens: 7, outputTokens: 3, unreportedModelCalls: 0 },
    });
  });
});

describe("usage", () => {
  const priced = { price: { inputPerMillionTokens: 3, outputPerMillionTokens: 15 } };

  test("is counted and priced in micros", async () => {
    const move = await moveOf(
      agentWith({ text: "x", usage: { inputTokens: 1000, outputTokens: 100 } }, priced),
    );
    expect(move).toMatchObject({ usage: { inputTokens: 1000, outputTokens: 100, costMicros: 4500 } });
  });

  test.each([[null], [{ inputTokens: 0, outputTokens: 0 }]])("%j is unknown, not zero", async (usage) => {
    expect(await moveOf(agentWith({ text: "x", usage }, priced))).toMatchObject({
      usage: { modelCalls: 1, unreportedModelCalls: 1, costMicros: 0 },
    });
  });

  test("of a refused request is none, of a broken one unknown", async () => {
    expect((await failOf({ error: { status: 429 } })).usage).toBeNull();
    expect((await failOf({ text: "half", breakAfter: 3 })).usage).toMatchObject({ unreportedModelCalls: 1 });
    const refused = Object.assign(new Error("Cannot connect to API"), {
      cause: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
    });
    expect((await failOf({ error: refused })).usage).toBeNull();
  });
});

describe("a provider's failure", () => {
  test.each([
    [{ status: 429, retryAfter: 2 }, "rate_limited", true, 2000],
    [{ status: 429, retryAfter: "0.5" }, "rate_limited", true, 500],
    [{ status: 429, headers: { "Retry-After-Ms": "40" } }, "rate_limited", true, 40],
    [{ status: 429 }, "rate_limited", true, null],
    [{ status: 503, retryAfter: new Date(NOW + 5000).toUTCString() }, "provider_unavailable", true, 5000],
    [{ status: 529, retryAfter: new Date(NOW - 5000).toUTCString() }, "provider_unavailable", true, 0],
    [{ status: 500, retryAfter: "soon" }, "provider_unavailable", true, null],
    [{ status: 408 }, "provider_unavailable", true, null],
    [{ status: 429, code: "insufficient_quota" }, "provider_quota", false, null],
    [{ status: 401 }, "provider_auth", false, null],
    [{ status: 403 }, "provider_auth", false, null],
    [{ status: 404 }, "provider_rejected", false, null],
    [{ status: 422, message: "temperature must be at most 2" }, "provider_rejected", false, null],
    [{ status: 400, code: "context_length_exceeded" }, "context_overflow", false, null],
    [{ status: 400, message: "prompt is too long: 250001 tokens > 200000" }, "context_overflow", false, null],
    [
      { status: 400, message: "This model's maximum context length is 8192 tokens." },
      "context_overflow",
      false,
      null,
    ],
    [
      { status: 400, message: "The input token count (9) exceeds the maximum number of tokens allowed (8)." },
      "context_overflow",
      false,
      null,
    ],
    [
      { status: 400, message: "the request exceeds the available context size" },
      "context_overflow",
      false,
      null,
    ],
  ] as const)("%j is %s", async (error, code, retryable, retryAfterMs) => {
    expect(await failOf({ error })).toMatchObject({ error: { code }, retryable, retryAfterMs });
  });

  test.each([
    [{ type: "overloaded_error", message: "Overloaded" }, "provider_unavailable", true],
    [{ type: "rate_limit_error", message: "slow down" }, "rate_limited", true],
    [{ type: "invalid_request_error", message: "prompt is too long: 9 > 8" }, "context_overflow", false],
    [{ type: "invalid_request_error", message: "no such field" }, "provider_rejected", false],
    [{ error: { type: "authentication_error", message: "invalid x-api-key" } }, "provider_auth", false],
  ])("inside the stream, %j, is %s", async (inStream, code, retryable) => {
    const inner = scriptedModel([""]);
    const model: LanguageModelV3 = {
      ...inner,
      doStream: () =>
        Promise.resolve({
          stream: new ReadableStream({
            start(controller) {
              controller.enqueue({ type: "error", error: inStream });
              controller.close();
            },
          }),
        }),
    };
    expect(await failOf("", { model })).toMatchObject({ error: { code }, retryable });
  });

  test("of the network is retried", async () => {
    expect(await failOf({ error: new TypeError("fetch failed") })).toMatchObject({
      error: { code: "provider_unavailable" },
      retryable: true,
    });
  });

  test("repeats the provider's words and none of its secrets (L32)", async () => {
    const said = await failOf({
      error: {
        status: 400,
        message:
          "bad request to https://user:hunter2@host/v1?api_key=abcdef with Bearer abcdefghijkl and sk-proj-0123456789abcdef",
        headers: { "set-cookie": "session=42" },
      },
    });
    expect(said.error.message).toContain("bad request to https://[redacted]@host/v1?api_key=[redacted]");
    expect(JSON.stringify(said)).not.toMatch(/hunter2|abcdef|session=42|0123456789/);
    const auth = await failOf({ error: { status: 401, message: "Incorrect API key provided: sk-12***34" } });
    expect(JSON.stringify(auth)).not.toContain("sk-12");
  });

  test("made by a script is an API error for the AI SDK too", async () => {
    const failure = scriptedModel([{ error: { status: 429 } }]).doStream({ prompt: [] });
    await expect(failure).rejects.toSatisfy((error) => APICallError.isInstance(error));
  });
});

describe("abort", () => {
  test("before the request, while it hangs, and between two events rejects with the reason", async () => {
    const reason = new Error("lease lost");
    const aborted = AbortSignal.abort(reason);
    const agent = agentWith({ text: "slow and long", delayMs: 10_000 });
    await expect(agent.open().next(contextOf(agent), aborted)).rejects.toBe(reason);

    const streaming = new AbortController();
    const moving = agent.open().next(contextOf(agent), streaming.signal);
    setImmediate(() => streaming.abort(reason));
    await expect(moving).rejects.toBe(reason);

    const deaf: LanguageModelV3 = { ...scriptedModel([""]), doStream: () => new Promise(() => undefined) };
    const hanging = new AbortController();
    const stuck = agentWith("", { model: deaf });
    const waiting = stuck.open().next(contextOf(stuck), hanging.signal);
    hanging.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  test("is obeyed although the provider's stream never moves again", async () => {
    const reason = new Error("canceled");
    const deaf: LanguageModelV3 = {
      ...scriptedModel([""]),
      doStream: () => Promise.resolve({ stream: new ReadableStream() }),
    };
    const agent = agentWith("", { model: deaf });
    const control = new AbortController();
    const moving = agent.open().next(contextOf(agent), control.signal);
    setImmediate(() => control.abort(reason));
    await expect(moving).rejects.toBe(reason);
  });
});

describe("a JSON answer", () => {
  const verdict = z.object({ verdict: z.enum(["ok", "bad"]), notes: z.array(z.string()).default([]) });

  function structured(turn: ScriptedTurn) {
    return modelAgent({
      name: "judge",
      instructions: INSTRUCTIONS,
      model: scriptedModel([turn]),
      output: verdict,
    });
  }

  test("is parsed, checked and given its defaults", async () => {
    for (const text of ['{"verdict":"ok"}', '```json\n{"verdict":"ok"}\n```']) {
      expect(await moveOf(structured(text))).toMatchObject({
        kind: "complete",
        output: { verdict: "ok", notes: [] },
        message: { content: [{ type: "text", text }] },
      });
    }
  });

  test("that is no JSON, or does not fit, is tried again", async () => {
    expect(await moveOf(structured("It is ok."))).toMatchObject({
      error: { code: "output_not_json" },
      retryable: true,
    });
    const unfit = await moveOf(structured('{"verdict":"maybe"}'));
    expect(unfit).toMatchObject({ error: { code: "output_invalid" }, retryable: true });
    expect(JSON.stringify(unfit)).toContain("verdict: ");
  });

  test("is asked for in the request and in the instructions", async () => {
    const { model, requests } = recording();
    const agent = modelAgent({ name: "judge", instructions: INSTRUCTIONS, model, output: verdict });
    await moveOf(agent);
    expect(requests[0]?.responseFormat).toMatchObject({ type: "json", schema: { required: ["verdict"] } });
    expect(requests[0]?.prompt[0]?.content).toContain('"enum":["ok","bad"]');
  });

  test("that is no object stands in one, because providers want an object", async () => {
    const output = z.array(z.number());
    const model = scriptedModel(['{"value":[1,2]}']);
    const agent = modelAgent({ name: "counter", instructions: INSTRUCTIONS, model, output });
    expect(agent.outputSchema).toMatchObject({ type: "array" });
    expect(await moveOf(agent)).toMatchObject({ kind: "complete", output: [1, 2] });
    const bare = { ...contextOf(agent), history: [] };
    expect(
      await modelAgent({ name: "counter", instructions: "x", model: scriptedModel(["{}"]), output })
        .open()
        .next(bare, new AbortController().signal),
    ).toMatchObject({ error: { code: "output_not_json" } });
  });

  test("follows the contract where that demands another one", async () => {
    const agent = structured('{"score":3}');
    const context = contextOf(agent);
    const outputSchema = { type: "object", properties: { score: { type: "number" } }, required: ["score"] };
    const contracted = { ...context, header: { ...context.header, outputSchema } };
    expect(await moveOf(agent, contracted)).toMatchObject({ kind: "complete", output: { score: 3 } });
  });
});

describe("the request", () => {
  const child = modelAgent({
    name: "api-diff",
    description: "compares two OpenAPI documents",
    instructions: "…",
    model: scriptedModel([""]),
    input: z.object({ before: z.string(), after: z.string() }),
  });

  test("has the instructions, the stored history as it is, and the tools in a fixed order", async () => {
    const { model, requests } = recording();
    const agent = agentWith("", { model, roster: [child], mayAsk: true, temperature: 0, maxOutputTokens: 9 });
    const history: HistoryMessage[] = [
      { role: "user", content: "plain text" },
      {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "c", toolName: "read_file", input: { path: "a" } }],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c",
            toolName: "read_file",
            output: { type: "text", value: "1" },
          },
        ],
      },
    ];
    await moveOf(agent, contextOf(agent, { history }));
    await moveOf(agent, contextOf(agent, { history: [...history, { role: "assistant", content: "so" }] }));
    const [first, second] = requests;
    expect(first?.prompt).toEqual([
      { role: "system", content: INSTRUCTIONS },
      { role: "user", content: [{ type: "text", text: "plain text" }] },
      ...history.slice(1),
    ]);
    // A committed prefix never changes, so a provider's cache holds.
    expect(JSON.stringify(second?.prompt)).toContain(JSON.stringify(first?.prompt).slice(1, -1));
    expect(JSON.stringify(second?.tools)).toBe(JSON.stringify(first?.tools));
    expect(first?.tools?.map((one) => one.name)).toEqual(["read_file", "list_files", "agent_run", "ask"]);
    expect(first).toMatchObject({ temperature: 0, maxOutputTokens: 9, toolChoice: { type: "auto" } });
    expect(first?.responseFormat).toBeUndefined();
  });

  test("describes the roster with each agent's schema", async () => {
    const { model, requests } = recording();
    await moveOf(agentWith("", { model, tools: [], roster: [{ agent: child, recursive: true }] }));
    const run = requests[0]?.tools?.[0];
    expect(run).toMatchObject({
      name: "agent_run",
      inputSchema: {
        properties: { agent: { enum: ["api-diff"] }, input: { required: ["before", "after"] } },
        required: ["agent", "goal", "input"],
      },
    });
    expect(run?.type === "function" && run.description).toContain(
      "- api-diff: compares two OpenAPI documents",
    );
  });

  test("lets the input be one of the agents' schemas, or anything where they cannot stand side by side", async () => {
    const text = agentWith("");
    const recursive = modelAgent({
      name: "tree",
      instructions: "…",
      model: scriptedModel([""]),
      inputSchema: { type: "object", properties: { child: { $ref: "#" } } },
    });
    for (const [roster, seen] of [
      [[child, text], "anyOf"],
      [[child, recursive], undefined],
    ] as const) {
      const { model, requests } = recording();
      await moveOf(agentWith("", { model, tools: [], roster }));
      const run = requests[0]?.tools?.[0];
      const input = (run?.type === "function" ? run.inputSchema.properties?.["input"] : {}) as object;
      expect("anyOf" in input).toBe(seen === "anyOf");
      expect(input).not.toHaveProperty("type");
    }
  });

  test("warns once about what the provider ignores", async () => {
    const inner = scriptedModel([""]);
    const model: LanguageModelV3 = {
      ...inner,
      doStream: () =>
        Promise.resolve({
          stream: new ReadableStream({
            start(controller) {
              controller.enqueue({
                type: "stream-start",
                warnings: [{ type: "unsupported", feature: "temperature" }],
              });
              controller.close();
            },
          }),
        }),
    };
    const agent = agentWith("", { model });
    const context = contextOf(agent);
    const session = agent.open();
    await session.next(context, new AbortController().signal);
    await session.next(context, new AbortController().signal);
    expect(context.warnings).toEqual(["scripted/script: unsupported: temperature"]);
    session.dispose();
  });
});

describe("the first prompt", () => {
  test("is the input alone for a root, and goal and input for a child", () => {
    const agent = agentWith("");
    const session = agent.open();
    const context = contextOf(agent);
    const textOf = (one: MoveContext): Json => session.prompt(one)[0]?.content ?? null;
    expect(textOf(context)).toEqual([{ type: "text", text: "look at it" }]);
    expect(textOf({ ...context, input: { b: 1, a: [2] } })).toEqual([
      { type: "text", text: '{"a":[2],"b":1}' },
    ]);
    const origin = { contract: { goal: "find the leak" } as Contract } as RunHeader["origin"];
    const child = { ...context, header: { ...context.header, origin }, input: { file: "a" } };
    expect(textOf(child)).toEqual([{ type: "text", text: 'Goal: find the leak\n\nInput:\n{"file":"a"}' }]);
    expect(textOf({ ...child, input: "find the leak" })).toEqual([{ type: "text", text: "find the leak" }]);
  });
});

describe("a definition", () => {
  test("is canonical, says what changes behaviour, and holds no secret (L32)", () => {
    const make = (providerOptions: ModelAgentOptions["providerOptions"], price = 1): AgentDefinition =>
      agentWith("", {
        ...(providerOptions === undefined ? {} : { providerOptions }),
        temperature: 0.5,
        price: { inputPerMillionTokens: price, outputPerMillionTokens: price },
      });
    const agent = make({ gateway: { byok: { openai: [{ apiKey: "k1" }] }, budgetTokens: 5, token: "k2" } });
    expect(agent.definition).toMatchObject({
      kind: "model",
      name: "reviewer",
      instructions: INSTRUCTIONS,
      model: { provider: "scripted", modelId: "script" },
      inputSchema: { type: "string" },
      outputSchema: { type: "string" },
      tools: [{ name: "read_file", replay: "never" }, { name: "list_files" }],
      settings: { temperature: 0.5, providerOptions: { gateway: { budgetTokens: 5, token: "[redacted]" } } },
    });
    expect(JSON.stringify(agent.definition)).not.toMatch(/k1|k2/);
    expect(JSON.stringify(make(undefined, 1).definition)).toBe(JSON.stringify(make(undefined, 2).definition));
    expect(agent).toMatchObject({ maxSteps: 64, maxAttempts: 5, mayAsk: false, kind: "model" });
  });

  test("parses its input by Standard Schema and by JSON Schema", async () => {
    const zod = modelAgent({
      name: "a",
      instructions: "…",
      model: scriptedModel([""]),
      input: z.object({ n: z.number(), tag: z.string().default("x") }),
    });
    expect(await zod.parseInput({ n: 1 })).toEqual({ ok: true, value: { n: 1, tag: "x" } });
    expect(await zod.parseInput({ n: "1" })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^n: /),
    });
    expectTypeOf(zod).toEqualTypeOf<AgentDefinition<{ n: number; tag?: string | undefined }, string>>();

    const json = modelAgent({
      name: "b",
      instructions: "…",
      model: scriptedModel([""]),
      inputSchema: { type: "object", required: ["n"] },
    });
    expect(await json.parseInput({ n: 1 })).toEqual({ ok: true, value: { n: 1 } });
    expect(await json.parseInput({})).toMatchObject({ ok: false });
    expect(await json.parseInput({ n: Number.NaN })).toMatchObject({ ok: false });
    expect(await agentWith("").parseInput(3)).toMatchObject({ ok: false });
    expectTypeOf(json).toEqualTypeOf<AgentDefinition<Json, string>>();
  });

  test.each<[string, Record<string, unknown>]>([
    ["has a name that no publication", { name: "a b" }],
    ["gateway name", { model: "openai/gpt-5" }],
    ["specification v2", { model: { ...scriptedModel([]), specificationVersion: "v2" } }],
    ["no language model", { model: {} }],
    ["maxSteps", { maxSteps: 0 }],
    ["maxAttempts", { maxAttempts: 1.5 }],
    ["a name that model providers refuse", { tools: [tool("read file")] }],
    ['lists the tool "a" twice', { tools: [tool("a"), tool("a")] }],
    ['lists the tool "ask" twice', { tools: [tool("ask")], mayAsk: true }],
    ["whose input is not an object", { tools: [tool("a", { inputSchema: { type: "string" } })] }],
    ['lists the agent "reviewer" twice', { roster: [agentWith(""), agentWith("")] }],
    ["has no JSON Schema", { input: z.date() }],
    [
      "cannot say itself as JSON Schema",
      { input: { "~standard": { version: 1, vendor: "mine", validate: () => ({ value: 1 }) } } },
    ],
  ])("is refused: %s", (what, extra) => {
    const make = (): unknown => agentWith("", extra as Partial<ModelAgentOptions>);
    expect(make).toThrow(what);
    expect(make).toThrow(expect.toSatisfy((error: unknown) => ErrandError.is(error)));
  });
});

test("failTimes counts for one model", async () => {
  const model = scriptedModel([failTimes(2, { status: 429, retryAfter: 1 }, "at last")]);
  const agent = agentWith("", { model });
  expect(await moveOf(agent)).toMatchObject({ kind: "fail", retryAfterMs: 1000 });
  expect(await moveOf(agent)).toMatchObject({ kind: "fail", retryAfterMs: 1000 });
  expect(await moveOf(agent)).toMatchObject({ kind: "complete", output: "at last" });
  expect(model.calls).toBe(3);
});
