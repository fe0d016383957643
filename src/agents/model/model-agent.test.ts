import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { ErrandError } from "../../domain/errand-error.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
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
      tools: [{ name: "read_file", replay: "safe" }, { name: "list_files" }],
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
    ["price.inputPerMillionTokens", { price: { inputPerMillion: 3, outputPerMillionTokens: 15 } }],
    ["has a name that no publication", { name: "a b" }],
    ["gateway name", { model: "openai/gpt-5" }],
    ["specification v2", { model: { ...scriptedModel([]), specificationVersion: "v2" } }],
    ["no language model", { model: {} }],
    ["maxSteps", { maxSteps: 0 }],
    ["maxAttempts", { maxAttempts: 1.5 }],
    ["a name that model providers refuse", { tools: [{ ...fileTool("a"), name: "read file" }] }],
    ['lists the tool "a" twice', { tools: [fileTool("a"), fileTool("a")] }],
    ['lists the tool "ask" twice', { tools: [{ ...fileTool("a"), name: "ask" }], mayAsk: true }],
    ["whose input is not an object", { tools: [{ ...fileTool("a"), inputSchema: { type: "string" } }] }],
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
