import { describe, expect, it } from "vitest";
import { chooseModel } from "./model-choice.ts";

describe("who plans", () => {
  it("is the script where no key is set, and wherever it is asked for", async () => {
    expect(await chooseModel(undefined, {})).toEqual({ name: "scripted", model: null });
    expect(await chooseModel("scripted", { OPENAI_API_KEY: "key" })).toEqual({
      name: "scripted",
      model: null,
    });
  });

  it("is a model of the provider whose key is set", async () => {
    const openai = await chooseModel(undefined, { OPENAI_API_KEY: "key" });
    expect(openai.name).toBe("openai/gpt-5-mini");
    expect(openai.model).toMatchObject({ specificationVersion: "v3", modelId: "gpt-5-mini" });
    const anthropic = await chooseModel("anthropic/claude-opus-4-5", { ANTHROPIC_API_KEY: "key" });
    expect(anthropic.model).toMatchObject({ specificationVersion: "v3", modelId: "claude-opus-4-5" });
  });

  it("is refused with what to do about it", async () => {
    await expect(chooseModel("openai", {})).rejects.toThrow("set OPENAI_API_KEY");
    await expect(chooseModel("nobody/model", {})).rejects.toThrow('There is no model "nobody/model"');
    const missing = chooseModel("openai", { OPENAI_API_KEY: "key" }, () =>
      Promise.reject(new Error("not found")),
    );
    await expect(missing).rejects.toThrow("npm install @ai-sdk/openai");
    const other = chooseModel("openai", { OPENAI_API_KEY: "key" }, () => Promise.resolve({}));
    await expect(other).rejects.toThrow("made for AI SDK 6");
  });
});
