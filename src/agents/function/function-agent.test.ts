import { afterEach, describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import {
  type AnyOptions,
  agent,
  finish,
  tick,
  watchRejections,
} from "../../../test/support/function-agents.ts";
import { Recorder, echo, echoed, n } from "../../../test/support/recorder.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { WantedCall } from "../../runtime/ports/carrier.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import { functionAgent } from "./function-agent.ts";
import type { FunctionContext } from "./function-context.ts";
import { NonRetryableError } from "./non-retryable-error.ts";

const unheard = watchRejections();
afterEach(async () => {
  await tick();
  unheard();
});

describe("calls", () => {
  it("makes one batch of the calls of one tick, with sites by branch and ordinal", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      const both = await Promise.all([ctx.tool(echo, { n: 1 }), ctx.tool(echo, { n: 2 })]);
      const parts = await Promise.all(
        ["left", "right"].map((name) =>
          ctx.branch(name, async (own) => {
            await own.tool(echo, { n: 3 });
            return await own.branch("deep", (inner) => inner.tool(echo, { n: 4 }));
          }),
        ),
      );
      return [...both, ...parts, await ctx.tool(echo, { n: 5 }, { key: "last" })];
    });
    expect(await recorder.play(definition.open())).toMatchObject({
      kind: "complete",
      output: [1, 2, 4, 4, 5],
    });
    expect(recorder.batches).toEqual([
      ["0", "1"],
      ["left/0", "right/0"],
      ["left/deep/0", "right/deep/0"],
      ["#last"],
    ]);
  });

  it("records time, chance, sleep, delegation and questions as calls", async () => {
    const child = agent(() => null, { name: "child" });
    const definition = functionAgent({
      name: "f",
      version: "1",
      inputSchema: true,
      outputSchema: true,
      mayAsk: true,
      roster: [child],
      run: async (ctx) => {
        const chance = await ctx.random();
        expect(chance).toBeGreaterThanOrEqual(0);
        expect(chance).toBeLessThan(1);
        await ctx.sleep(50);
        const answer = await ctx.ask({ prompt: "Which?", schema: z.object({ pick: z.string() }) });
        expectTypeOf(answer).toEqualTypeOf<{ pick: string }>();
        await ctx.run(child, { x: 1 }, { goal: "Do it." });
        return [await ctx.now(), answer.pick];
      },
    });
    const recorder = new Recorder();
    const answers = (call: WantedCall): CallOutcome => ({
      ok: true,
      value: call.tool === "ask" ? { pick: "b" } : null,
    });
    expect(await recorder.play(definition.open(), answers)).toMatchObject({ output: [1_000, "b"] });
    expect(recorder.journal.map(({ tool, input }) => [tool, input])).toEqual([
      ["random", null],
      ["sleep", { ms: 50 }],
      ["ask", { kind: "input_required", prompt: "Which?", schema: expect.anything(), deadlineMs: null }],
      ["agent_run", { agent: "child", goal: "Do it.", input: { x: 1 } }],
      ["now", null],
    ]);
    recorder.now = 9_999;
    expect(await recorder.play(definition.open())).toMatchObject({ output: [1_000, "b"] });
  });

  it("snapshots inputs and answers, so that nobody changes the record", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      const input = { n: 1, list: [1] };
      const call = ctx.tool(echo, input);
      input.list.push(2);
      const answer = (await call) as unknown as { list: number[] };
      answer.list.push(3);
      return answer.list;
    });
    const back = (call: WantedCall): CallOutcome => ({ ok: true, value: call.input });
    expect(await recorder.play(definition.open(), back)).toMatchObject({ output: [1, 3] });
    expect(recorder.journal[0]?.answer).toEqual({ ok: true, value: { n: 1, list: [1] } });
  });

  it("puts calls made while a batch is open into the next batch", async () => {
    const recorder = new Recorder();
    let release = (): void => undefined;
    const foreign = new Promise<void>((resolve) => {
      release = resolve;
    });
    const definition = agent(async (ctx) => {
      const late = ctx.branch("late", async (own) => {
        await foreign;
        return own.tool(echo, { n: 2 });
      });
      return [await ctx.tool(echo, { n: 1 }), await ctx.tool(echo, { n: 3 }), await late];
    });
    const session = definition.open();
    const first = await session.next(recorder.context(), new AbortController().signal);
    release();
    await tick();
    recorder.record(first.kind === "calls" ? first.calls : [], echoed);
    expect(await recorder.play(session)).toMatchObject({ output: [1, 3, 2] });
    expect(recorder.batches).toEqual([["0"], ["late/0", "1"]]);
    expect(await finish(definition, recorder)).toMatchObject({ output: [1, 3, 2] });
  });

  it("waits for foreign work, and gives up when its signal aborts", async () => {
    const slow = agent(() => new Promise((resolve) => setTimeout(resolve, 5, "done")));
    expect(await finish(slow)).toMatchObject({ kind: "complete", output: "done" });
    let seen: AbortSignal | undefined;
    const session = agent((ctx) => {
      seen = ctx.signal;
      return new Promise(() => undefined);
    }).open();
    const controller = new AbortController();
    const move = session.next(new Recorder().context(), controller.signal);
    controller.abort(new Error("claim lost"));
    await expect(move).rejects.toThrow("claim lost");
    expect(seen?.aborted).toBe(true);
    await expect(session.next(new Recorder().context(), controller.signal)).rejects.toThrow("claim lost");
  });
});

describe("failures", () => {
  it("K10.1 rejects a failed call with CALL_FAILED; its siblings keep their answers", async () => {
    const definition = agent(async (ctx) => {
      const settled = await Promise.allSettled([1, 2, 3].map((one) => ctx.tool(echo, { n: one })));
      return settled.map((one) => {
        if (one.status === "fulfilled") return one.value;
        const error = one.reason as ErrandError;
        return { code: error.code, details: error.details, cause: error.cause };
      }) as Json;
    });
    const error = { code: "tool_error", message: "no disk", details: { at: 1 } };
    const recorder = new Recorder();
    const move = await recorder.play(definition.open(), (call) =>
      n(call) === 2 ? { ok: false, error } : echoed(call),
    );
    const output = [1, { code: "CALL_FAILED", details: error, cause: error }, 3];
    expect(move).toMatchObject({ kind: "complete", output });
    expect(await finish(definition, recorder)).toMatchObject({ output });
  });

  it.each<[string, unknown, object, boolean]>([
    ["an error", new Error("boom"), { code: "agent_error", message: "boom" }, true],
    ["no error at all", "bare", { code: "agent_error", message: "bare" }, true],
    [
      "NonRetryableError",
      new NonRetryableError("stop", { code: "bad_data", details: [1] }),
      { code: "bad_data", details: [1] },
      false,
    ],
    ["STORE_BUSY", new ErrandError("STORE_BUSY", "Busy.", "Wait."), { code: "STORE_BUSY" }, true],
    ["INVALID_INPUT", new ErrandError("INVALID_INPUT", "Bad.", "Fix."), { code: "INVALID_INPUT" }, false],
  ])("fails by %s", async (_what, thrown, error, retryable) => {
    const move = await finish(agent(() => Promise.reject(thrown as Error)));
    expect(move).toMatchObject({ kind: "fail", error, retryable });
    expect(JSON.stringify(move)).not.toContain(".test.ts");
  });

  it("L10 fails for good by an uncaught outcome_unknown, and not when it is caught", async () => {
    const unknown = (): CallOutcome => failed("outcome_unknown", "Unknown.");
    const uncaught = agent((ctx) => ctx.tool(echo, { n: 1 }));
    const move = await new Recorder().play(uncaught.open(), unknown);
    expect(move).toMatchObject({
      retryable: false,
      error: { code: "CALL_FAILED", details: { code: "outcome_unknown", message: "Unknown." } },
    });
    const caught = agent((ctx) => ctx.tool(echo, { n: 1 }).catch(() => "anyway"));
    expect(await new Recorder().play(caught.open(), unknown)).toMatchObject({ output: "anyway" });
  });

  it("refuses an output that is no JSON, and converts one that has a schema", async () => {
    expect(await finish(agent(() => new Map()))).toMatchObject({
      kind: "fail",
      retryable: false,
      error: { code: "output_invalid", message: expect.stringContaining("Map") },
    });
    const typed = functionAgent({
      name: "f",
      version: "1",
      input: z.object({ n: z.number().default(7) }),
      output: z.object({ n: z.number(), more: z.string().default("m") }),
      run: (_ctx, { n: value }) => ({ n: value, extra: 1 }),
    });
    expectTypeOf(typed).toEqualTypeOf<
      AgentDefinition<{ n?: number | undefined }, { n: number; more: string }>
    >();
    expect(await typed.parseInput({})).toEqual({ ok: true, value: { n: 7 } });
    expect(await typed.parseInput({ n: "x" })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^n: /),
    });
    const recorder = new Recorder();
    recorder.input = { n: 7 };
    expect(await finish(typed, recorder)).toMatchObject({ output: { n: 7, more: "m" } });
  });

  it("refuses misuse with an error that says what to do", async () => {
    const other: Tool = { ...echo, name: "other" };
    const cases: [(ctx: FunctionContext<Json>) => unknown, RegExp][] = [
      [(ctx) => ctx.ask({ prompt: "?" }), /INVALID_AGENT.*mayAsk: true/s],
      [(ctx) => ctx.tool(other, {}), /INVALID_AGENT.*"other".*`tools`/s],
      [
        (ctx) =>
          ctx.run(
            agent(() => 1, { name: "g" }),
            {},
          ),
        /INVALID_AGENT.*"g".*`roster`/s,
      ],
      [(ctx) => ctx.sleep(-1), /INVALID_INPUT.*sleep/s],
      [(ctx) => ctx.tool(echo, { n: Number.NaN }), /INVALID_INPUT.*number NaN at \/n/s],
      [(ctx) => ctx.branch("a/b", () => 1), /INVALID_INPUT.*name a branch/s],
      [(ctx) => Promise.all([ctx.branch("a", () => 1), ctx.branch("a", () => 1)]), /opened twice/],
      [
        (ctx) =>
          Promise.all([ctx.tool(echo, { n: 1 }, { key: "k" }), ctx.tool(echo, { n: 2 }, { key: "k" })]),
        /INVALID_INPUT.*Key "k"/s,
      ],
    ];
    for (const [run, message] of cases) {
      const move = await finish(agent(run));
      expect(move).toMatchObject({ kind: "fail", retryable: false });
      expect(move.kind === "fail" ? `${move.error.code}: ${move.error.message}` : "").toMatch(message);
    }
  });

  it("answers the same key with the same call", async () => {
    const recorder = new Recorder();
    const definition = agent((ctx) =>
      Promise.all([1, 1].map((one) => ctx.tool(echo, { n: one }, { key: "k" }))),
    );
    expect(await finish(definition, recorder)).toMatchObject({ output: [1, 1] });
    expect(recorder.batches).toEqual([["#k"]]);
  });

  it("never leaves a rejection unheard, whatever the function drops", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      void ctx.tool(echo, { n: 1 });
      void ctx.branch("b", () => Promise.reject(new Error("dropped")));
      await ctx.tool(echo, { n: 2 });
      void ctx.tool(echo, { n: 3 });
      return "done";
    });
    const move = await recorder.play(definition.open(), () => failed("tool_error", "x"), 0);
    expect(move).toMatchObject({ kind: "calls" });
    expect(
      await recorder.play(definition.open(), (call) => (n(call) === 1 ? failed("e", "x") : echoed(call))),
    ).toMatchObject({
      output: "done",
    });
    expect(recorder.warnings).toEqual([expect.stringMatching(/site 2 \(echo\).*Await every call/s)]);
  });
});

describe("defining a function agent", () => {
  it("publishes what its callers rely on, and nothing of how it is tuned", () => {
    const digest = (more: AnyOptions) => JSON.stringify(agent(() => 1, more).definition);
    expect(digest({ maxAttempts: 9, description: "Other." })).toBe(digest({}));
    for (const more of [
      { version: "2" },
      { tools: [] },
      { mayAsk: true },
      { inputSchema: false },
      { name: "g" },
    ]) {
      expect(digest(more)).not.toBe(digest({}));
    }
    expect(agent(() => 1)).toMatchObject({
      kind: "function",
      maxSteps: 1_000,
      maxAttempts: 3,
      mayAsk: false,
    });
  });

  it.each<[string, AnyOptions]>([
    ["a name with a space", { name: "a b" }],
    ["no version", { version: "" }],
    ["two tools of one name", { tools: [echo, { ...echo }] }],
    ["two agents of one name", { roster: [agent(() => 1), { agent: agent(() => 1) }] }],
    ["a limit of 0", { limits: { maxDepth: 0 } }],
    ["no attempt", { maxAttempts: 0 }],
    ["no patience", { replayPatienceMs: 0 }],
    ["no schema", { inputSchema: undefined }],
  ])("refuses %s", (_what, more) => {
    expect(() => agent(() => 1, more)).toThrow(/INVALID_AGENT/);
  });
});
