import type { LanguageModelV3Prompt, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { describe, expect, test } from "vitest";
import { ScriptedProviderError, type ScriptedView, failTimes, scriptedModel } from "./index.ts";

const asked: LanguageModelV3Prompt = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Look." }] },
];
const answered: LanguageModelV3Prompt = [
  ...asked,
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "call_0_0", toolName: "look", input: {} }],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "call_0_0",
        toolName: "look",
        output: { type: "json", value: { seen: 3 } },
      },
    ],
  },
];

async function partsOf(
  model: ReturnType<typeof scriptedModel>,
  prompt: LanguageModelV3Prompt,
): Promise<readonly LanguageModelV3StreamPart[]> {
  const { stream } = await model.doStream({ prompt });
  const parts: LanguageModelV3StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

describe("a scripted model", () => {
  const script = [{ text: "I look.", calls: [{ tool: "look" }, { tool: "look" }] }, "Seen."];

  test("takes the turn that the prompt has come to, also as another object after a crash", async () => {
    const first = scriptedModel(script);
    const again = scriptedModel(script);
    expect(await partsOf(again, answered)).toEqual(await partsOf(first, answered));
    // Out of order, and twice: nothing is remembered.
    expect(await partsOf(first, asked)).toEqual(await partsOf(again, asked));
    const text = (await partsOf(again, answered)).flatMap((part) =>
      part.type === "text-delta" ? [part.delta] : [],
    );
    expect(text.join("")).toBe("Seen.");
    expect(first.calls + again.calls).toBe(5);
  });

  test("names calls after turn and place, and streams them in pieces", async () => {
    const parts = await partsOf(scriptedModel(script), asked);
    expect(parts.filter((part) => part.type === "tool-call")).toEqual([
      { type: "tool-call", toolCallId: "call_0_0", toolName: "look", input: "{}" },
      { type: "tool-call", toolCallId: "call_0_1", toolName: "look", input: "{}" },
    ]);
    expect(parts.at(-1)).toMatchObject({
      type: "finish",
      finishReason: { unified: "tool-calls" },
      usage: { inputTokens: { total: 100 }, outputTokens: { total: 20 } },
    });
    expect(parts.filter((part) => part.type === "text-delta").length).toBeGreaterThan(2);
  });

  test("never cuts inside a character", async () => {
    const parts = await partsOf(scriptedModel([{ text: "😀😀😀", chunks: 2 }]), asked);
    const pieces = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []));
    expect(pieces).toEqual(["😀😀", "😀"]);
  });

  test("shows a function the request", async () => {
    const views: ScriptedView[] = [];
    const model = scriptedModel((view) => {
      views.push(view);
      return "ok";
    });
    await model.doStream({
      prompt: answered,
      tools: [{ type: "function", name: "look", inputSchema: { type: "object" } }],
    });
    expect(views).toMatchObject([
      {
        step: 1,
        tools: ["look"],
        userText: "Look.",
        toolResults: [{ tool: "look", callId: "call_0_0", ok: true, value: { seen: 3 } }],
      },
    ]);
  });

  test("says when its script is at an end", async () => {
    const over = scriptedModel(["only one"], { modelId: "short" }).doStream({ prompt: answered });
    await expect(over).rejects.toThrow('The script of model "short" has no turn 1; it has 1.');
    await expect(over).rejects.toBeInstanceOf(ScriptedProviderError);
  });

  test("waits no longer than the signal", async () => {
    const control = new AbortController();
    const { stream } = await scriptedModel([{ text: "slow", delayMs: 60_000 }]).doStream({
      prompt: asked,
      abortSignal: control.signal,
    });
    const reading = stream.getReader().read();
    control.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
  });
});

describe("under the AI SDK", () => {
  test("a whole loop with a tool runs", async () => {
    const model = scriptedModel([
      { calls: [{ tool: "look", input: { at: "a" } }] },
      ({ toolResults }) => `Seen ${JSON.stringify(toolResults[0]?.value)}.`,
    ]);
    const look = tool({
      inputSchema: jsonSchema<{ at: string }>({ type: "object" }),
      execute: ({ at }) => ({ at }),
    });
    const result = streamText({
      model,
      prompt: "Look.",
      tools: { look },
      stopWhen: ({ steps }) => steps.length === 2,
    });
    expect(await result.text).toBe('Seen {"at":"a"}.');
    expect(await result.totalUsage).toMatchObject({ inputTokens: 200, outputTokens: 40 });
  });

  test("its failures are retried like a provider's", async () => {
    const model = scriptedModel([failTimes(1, { status: 429, headers: { "retry-after-ms": "1" } }, "Now.")]);
    expect((await generateText({ model, prompt: "Go." })).text).toBe("Now.");
    expect(model.calls).toBe(2);
  });
});
