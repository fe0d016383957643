import { describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import { ErrandError } from "../domain/errand-error.ts";
import type { RunId, TenantId } from "../domain/id.ts";
import type { StandardSchema } from "../runtime/ports/standard-schema.ts";
import type { ToolCallContext } from "../runtime/ports/tool.ts";
import { type DefinedTool, type ToolOptions, defineTool } from "./define-tool.ts";
import { ToolFailure } from "./tool-failure.ts";

const context: ToolCallContext = {
  tenant: "t" as TenantId,
  runId: "run_00000001" as RunId,
  rootRunId: "run_00000001" as RunId,
  agent: "a",
  effectKey: "run_00000001/1.0",
  execution: 1,
  user: null,
  progress: () => undefined,
};
const live = (): AbortSignal => new AbortController().signal;
const fields = z.object({ text: z.string() });
type Options = ToolOptions<typeof fields, unknown>;
const tool = (more: Partial<Options> = {}): DefinedTool =>
  defineTool({
    name: "note",
    description: "Takes a note.",
    input: fields,
    replay: "never",
    effect: "any",
    run: () => "done",
    ...more,
  });
const refused = (make: () => unknown): ErrandError => {
  try {
    make();
  } catch (error) {
    if (ErrandError.is(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
};
const vendor = (validate: StandardSchema["~standard"]["validate"]): StandardSchema<{ text: string }> => ({
  "~standard": { version: 1, vendor: "homemade", validate: validate as never },
});

describe("defining a tool", () => {
  it("publishes the JSON Schema of what goes in, and types input and answer", () => {
    const typed = defineTool({
      name: "add",
      description: "Adds.",
      input: z.object({ a: z.number(), b: z.number().default(1) }),
      replay: "safe",
      effect: "none",
      run: ({ a, b }) => ({ sum: a + b }),
    });
    expect(typed.inputSchema).toMatchObject({ type: "object", required: ["a"] });
    expect(typed.parse({ a: 1 })).toEqual({ ok: true, value: { a: 1, b: 1 } });
    expectTypeOf(typed).toExtend<DefinedTool<{ a: number; b?: number | undefined }, { sum: number }>>();
    const silent = defineTool({
      name: "s",
      description: "S.",
      input: fields,
      replay: "never",
      effect: "any",
      run: () => {},
    });
    expectTypeOf(silent).toExtend<DefinedTool<{ text: string }, null>>();
  });

  it("has careful defaults", () => {
    expect(tool()).toMatchObject({
      timeoutMs: 60_000,
      maxExecutions: 3,
      parallel: false,
      mayNeedApproval: false,
    });
    expect(tool({ effect: "read_only", replay: "safe" }).parallel).toBe(true);
  });

  it.each<[string, Partial<Options>, RegExp]>([
    ["a name with a space", { name: "a b" }, /providers refuse/],
    ["a long name", { name: "x".repeat(65) }, /providers refuse/],
    ["a built-in name", { name: "agent_run" }, /built-in/],
    ["another built-in name", { name: "random" }, /built-in/],
    ["no description", { description: " " }, /no description/],
    ["an unknown replay policy", { replay: "often" as never }, /never, safe, idempotent, durable/],
    ["an unknown effect", { effect: "some" as never }, /none, read_only, idempotent, any/],
    ["L10 any effect replayed as safe", { replay: "safe" }, /happen twice.*effectKey/s],
    ["L10 durable without reconnect", { replay: "durable" }, /no `reconnect`/],
    ["reconnect that is never called", { reconnect: () => 1 }, /never calls/],
    ["no time at all", { timeoutMs: 0 }, /timeout 0/],
    ["a timeout no timer can hold", { timeoutMs: 2 ** 31 }, /timeout/],
    ["no execution at all", { maxExecutions: 0 }, /maxExecutions 0/],
    ["no input schema", { input: undefined }, /neither `input` nor `inputSchema`/],
    ["something that is no schema", { input: {} as never }, /not a Standard Schema/],
    ["an input that is no object", { input: z.string() as never }, /not an object/],
    [
      "a schema JSON cannot say",
      { input: z.object({ at: z.date() }) as never },
      /no JSON Schema.*inputSchema/s,
    ],
  ])("refuses %s", (_what, more, text) => {
    const error = refused(() => tool(more));
    expect(error.code).toBe("INVALID_TOOL");
    expect(error.message).toMatch(text);
  });

  it("takes a vendor without JSON Schema only with inputSchema", () => {
    const input = vendor((value) => ({ value: value as { text: string } })) as never;
    expect(refused(() => tool({ input })).message).toMatch(/homemade.*`inputSchema`/s);
    expect(tool({ input, inputSchema: { type: "object" } }).inputSchema).toEqual({ type: "object" });
  });

  it("takes a JSON Schema alone", () => {
    const bare = defineTool({
      name: "bare",
      description: "Bare.",
      inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      replay: "never",
      effect: "any",
      run: (input) => input,
    });
    expect(bare.parse({ n: 1 })).toEqual({ ok: true, value: { n: 1 } });
    expect(bare.parse({ n: "1" })).toMatchObject({ ok: false });
  });

  it("refuses a schema that answers with a promise, at its first use", () => {
    const input = vendor(async () => ({ issues: [{ message: "late" }] })) as never;
    const slow = tool({ input, inputSchema: { type: "object" } });
    const error = refused(() => slow.parse({ text: "x" }));
    expect(error.code).toBe("INVALID_TOOL");
    expect(error.message).toMatch(/asynchronous checks out of the schema/);
  });

  it("names the place in a refused input", () => {
    expect(tool().parse({ text: 1 })).toEqual({ ok: false, message: expect.stringMatching(/^text: /) });
  });
});

describe("approval", () => {
  it("is decided from the parsed input, and fails closed", () => {
    const asks = tool({
      approval: ({ text }) => text === "delete",
      approvalPrompt: ({ text }) => `Really ${text}?`,
    });
    expect(asks.mayNeedApproval).toBe(true);
    expect(asks.approval({ text: "delete" })).toBe(true);
    expect(asks.approval({ text: "read" })).toBe(false);
    expect(asks.approval({ text: 1 })).toBe(false);
    expect(asks.approvalPrompt({ text: "delete" })).toBe("Really delete?");
    const broken = tool({
      approval: () => {
        throw new Error("rule");
      },
    });
    expect(broken.approval({ text: "x" })).toBe(true);
    expect(tool({ approval: true }).approvalPrompt({ text: "x" })).toBe('Allow note with {"text":"x"}?');
  });
});

describe("running a tool", () => {
  const run = (more: Partial<Options>, signal = live()) => tool(more).run({ text: "x" }, context, signal);

  it("answers with a JSON value; nothing is null", async () => {
    expect(await run({ run: async () => ({ n: 1, gone: undefined }) })).toEqual({
      ok: true,
      value: { n: 1 },
    });
    expect(await run({ run: () => undefined })).toEqual({ ok: true, value: null });
  });

  it.each([
    ["a Map", new Map([["k", 1]]), "Map at /x"],
    ["NaN", Number.NaN, "number NaN"],
    ["a bigint", 1n, "bigint"],
    ["an Error", new Error("e"), "Error"],
    ["a function", () => 1, "function"],
  ])("answers %s with tool_result_invalid", async (_what, x, text) => {
    expect(await run({ run: () => ({ x }) })).toMatchObject({
      ok: false,
      error: { code: "tool_result_invalid", message: expect.stringContaining(text) },
    });
  });

  it("answers a cycle with tool_result_invalid", async () => {
    const knot: Record<string, unknown> = {};
    knot["knot"] = knot;
    expect(await run({ run: () => knot })).toMatchObject({ error: { code: "tool_result_invalid" } });
  });

  it("K10.1 turns what is thrown into a typed failure, never with a stack", async () => {
    const outcome = await run({
      run: () => {
        throw new Error("disk full");
      },
    });
    expect(outcome).toEqual({ ok: false, error: { code: "tool_error", message: "disk full" } });
    expect(await run({ run: () => Promise.reject("bare") })).toMatchObject({ error: { message: "bare" } });
  });

  it("keeps the code of a ToolFailure", async () => {
    const failure = new ToolFailure("not_found", "No such file.", { details: { path: "a" } });
    expect(await run({ run: () => Promise.reject(failure) })).toEqual({
      ok: false,
      error: { code: "not_found", message: "No such file.", details: { path: "a" } },
    });
    expect(() => new ToolFailure("two words", "x")).toThrow(/code/);
  });

  it("ends a tool that ignores its time, and aborts its signal", async () => {
    let seen: AbortSignal | undefined;
    const outcome = await run({
      timeoutMs: 5,
      run: (_input, _context, signal) => {
        seen = signal;
        return new Promise(() => undefined);
      },
    });
    expect(outcome).toMatchObject({ ok: false, error: { code: "tool_timeout", details: { timeoutMs: 5 } } });
    expect(seen?.aborted).toBe(true);
  });

  it("rejects with the runtime's reason when the runtime aborts, before or while it runs", async () => {
    const controller = new AbortController();
    let seen: AbortSignal | undefined;
    const running = run(
      {
        run: (_input, _context, signal) => {
          seen = signal;
          return new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => reject(new Error("own"))),
          );
        },
      },
      controller.signal,
    );
    await Promise.resolve();
    await Promise.resolve();
    controller.abort(new Error("canceled"));
    await expect(running).rejects.toThrow("canceled");
    expect(seen?.aborted).toBe(true);
    await expect(run({}, controller.signal)).rejects.toThrow("canceled");
  });

  it("L10 gives run and reconnect the same stable effect key", async () => {
    const keys: string[] = [];
    const note = async (_input: unknown, { effectKey }: ToolCallContext) => keys.push(effectKey);
    const durable = tool({ replay: "durable", run: note, reconnect: note });
    await durable.run({ text: "x" }, context, live());
    expect(await durable.reconnect?.({ text: "x" }, { ...context, execution: 2 }, live())).toEqual({
      ok: true,
      value: 2,
    });
    expect(new Set(keys).size).toBe(1);
  });
});
