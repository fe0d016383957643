import type { LanguageModelV3, LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Contract } from "../../domain/contract/contract.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Move, MoveContext } from "../../runtime/ports/carrier.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import { type WatchedContext, watchedContext } from "../../testing/move-context.ts";
import { defineTool } from "../../tools/define-tool.ts";
import { type ModelAgentOptions, type ScriptedTurn, failTimes, modelAgent, scriptedModel } from "./index.ts";

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

test("failTimes counts for one model", async () => {
  const model = scriptedModel([failTimes(2, { status: 429, retryAfter: 1 }, "at last")]);
  const agent = agentWith("", { model });
  expect(await moveOf(agent)).toMatchObject({ kind: "fail", retryAfterMs: 1000 });
  expect(await moveOf(agent)).toMatchObject({ kind: "fail", retryAfterMs: 1000 });
  expect(await moveOf(agent)).toMatchObject({ kind: "complete", output: "at last" });
  expect(model.calls).toBe(3);
});
