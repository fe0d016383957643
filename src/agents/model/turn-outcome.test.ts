import type { LanguageModelV3 } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Move, MoveContext } from "../../runtime/ports/carrier.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import { type WatchedContext, watchedContext } from "../../testing/move-context.ts";
import { defineTool } from "../../tools/define-tool.ts";
import { type ModelAgentOptions, type ScriptedTurn, modelAgent, scriptedModel } from "./index.ts";

const INSTRUCTIONS = "You review releases.";
const fileTool = (name: string): Tool =>
  defineTool({
    name,
    description: `does ${name}`,
    input: z.object({ path: z.string() }),
    replay: "safe",
    effect: "read_only",
    run: () => null,
  });

function agentWith(turn: ScriptedTurn, extra: Partial<ModelAgentOptions> = {}): AgentDefinition {
  return modelAgent({
    name: "reviewer",
    instructions: INSTRUCTIONS,
    model: scriptedModel([turn]),
    tools: [fileTool("read_file"), fileTool("list_files")],
    ...extra,
  });
}

function contextOf(agent: AgentDefinition, extra: Partial<MoveContext> = {}): WatchedContext {
  const history = [{ role: "user", content: "look at it" }] as const;
  return watchedContext(agent, { input: "look at it", history, ...extra });
}

async function moveOf(agent: AgentDefinition, context: MoveContext = contextOf(agent)): Promise<Move> {
  return agent.open().next(context, new AbortController().signal);
}

async function failOf(turn: ScriptedTurn, extra: Partial<ModelAgentOptions> = {}) {
  const move = await moveOf(agentWith(turn, extra));
  if (move.kind !== "fail") throw new Error(`expected a failure, got ${JSON.stringify(move)}`);
  return move;
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
