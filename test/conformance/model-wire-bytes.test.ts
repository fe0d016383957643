import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import type { Move } from "../../src/runtime/ports/carrier.ts";
import { SECRET, agentOn, drive } from "./model-driver.ts";

describe("a model's answer, byte for byte", () => {
  const event = (data: object | string): string =>
    `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
  const anthropic = (...events: readonly { readonly type: string }[]): string =>
    [
      {
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          model: "claude-sonnet-4-5",
          content: [],
          usage: { input_tokens: 5, output_tokens: 0 },
        },
      },
      ...events,
    ]
      .map((one) => `event: ${one.type}\n${event(one)}`)
      .join("");
  const openai = (...deltas: readonly object[]): string =>
    deltas
      .map((delta) => event({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta }] }))
      .join("");

  /** Answers one request with these bytes and an orderly end, as a proxy does that gave up. */
  async function answering(bytes: string, open: (url: string) => LanguageModelV3): Promise<readonly Move[]> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" }).end(bytes);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      return (await drive(agentOn(open(`http://127.0.0.1:${port}`)), "go", 1)).moves;
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  const onAnthropic = (baseURL: string): LanguageModelV3 =>
    createAnthropic({ baseURL, apiKey: SECRET })("claude-sonnet-4-5");
  const onCompatible = (baseURL: string): LanguageModelV3 =>
    createOpenAICompatible({ name: "local", baseURL })("m");
  const onOpenAI = (baseURL: string): LanguageModelV3 => createOpenAI({ baseURL, apiKey: SECRET }).chat("m");

  const textStart = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
  const halfText = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Half" } };
  const brokenCall = [
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "toolu_1", name: "read_file", input: {} },
    },
    {
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: '{"path": "a.t' },
    },
    { type: "content_block_stop", index: 0 },
  ];

  test("malformed arguments on the Anthropic wire are answered", async () => {
    const end = [
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use", stop_sequence: null },
        usage: { output_tokens: 3 },
      },
      { type: "message_stop" },
    ];
    const [move] = await answering(anthropic(...brokenCall, ...end), onAnthropic);
    expect(move).toMatchObject({
      kind: "calls",
      calls: [
        {
          input: { malformedArguments: '{"path": "a.t' },
          providerCallId: "toolu_1",
          answer: { error: { code: "invalid_tool_input" } },
        },
      ],
    });
  });

  const text = { role: "assistant", content: "Half an" };
  const call = {
    role: "assistant",
    tool_calls: [
      { index: 0, id: "c1", type: "function", function: { name: "read_file", arguments: '{"path":"a"}' } },
    ],
  };
  test.each([
    ["anthropic text", anthropic(textStart, halfText), onAnthropic],
    ["anthropic call", anthropic(...brokenCall), onAnthropic],
    ["compatible text", openai(text), onCompatible],
    ["compatible call", openai(call), onCompatible],
    ["openai text", openai(text), onOpenAI],
    ["openai call", openai(call), onOpenAI],
  ] as const)("a stream that ends in order but without an end is unknown: %s", async (_name, bytes, open) => {
    expect(await answering(bytes, open)).toMatchObject([
      { kind: "fail", error: { code: "stream_incomplete" }, retryable: true },
    ]);
  });

  test("an overload reported inside the stream is retried", async () => {
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(await answering(anthropic(overloaded), onAnthropic)).toMatchObject([
      { kind: "fail", error: { code: "provider_unavailable" }, retryable: true },
    ]);
  });

  test.each([
    ["compatible", onCompatible],
    ["openai", onOpenAI],
    ["anthropic", onAnthropic],
  ] as const)("nothing at all under status 200 is an empty turn: %s", async (_name, open) => {
    expect(await answering("", open)).toMatchObject([
      { kind: "fail", error: { code: "empty_turn" }, retryable: true },
    ]);
  });
});
