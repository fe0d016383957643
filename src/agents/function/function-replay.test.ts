import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { agent, finish, tick, watchRejections } from "../../../test/support/function-agents.ts";
import { Recorder, echo, echoed, n } from "../../../test/support/recorder.ts";
import type { ErrandError } from "../../domain/errand-error.ts";
import { type CallOutcome, failed } from "../../domain/tool-batch/call-outcome.ts";
import type { WantedCall } from "../../runtime/ports/carrier.ts";
import type { Json } from "../../rules/json.ts";
import { functionAgent } from "./function-agent.ts";
import type { FunctionContext } from "./function-context.ts";

const unheard = watchRejections();
afterEach(async () => {
  await tick();
  unheard();
});

describe("replay", () => {
  const shape = (ctx: FunctionContext<Json>, plan: readonly number[], log: string[]): Promise<unknown> =>
    Promise.all(
      plan.map((depth, at) =>
        ctx.branch(`b${at}`, async (own) => {
          let last: unknown = at;
          for (let i = 0; i < depth; i++) {
            const calls = [1, 2, 3]
              .slice(0, 1 + ((at + i) % 3))
              .map((one) => own.tool(echo, { n: at * 100 + i * 10 + one }));
            try {
              last = i % 2 === 0 ? await Promise.race(calls) : await Promise.all(calls);
            } catch (error) {
              last = (error as ErrandError).code;
            }
            log.push(`${at}.${i}:${JSON.stringify(last)}`);
          }
          return last;
        }),
      ),
    );

  it("L9 gives the same answers in the same order, wherever the process was killed", async () => {
    const answer = (call: WantedCall): CallOutcome =>
      n(call) % 7 === 0 ? failed("tool_error", "7") : echoed(call);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
        fc.nat(6),
        async (plan, kill) => {
          const logs: string[][] = [[], [], []];
          const definition = (at: number) => agent((ctx) => shape(ctx, plan, logs[at] ?? []));
          const straight = new Recorder();
          const expected = await straight.play(definition(0).open(), answer);
          const broken = new Recorder();
          const session = definition(1).open();
          await broken.play(session, answer, kill);
          session.dispose();
          expect(await broken.play(definition(2).open(), answer)).toEqual(expected);
          expect(logs[2]).toEqual(logs[0]);
          expect(broken.journal).toEqual(straight.journal);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("keeps the recorded calls in a new attempt", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      const one = await ctx.tool(echo, { n: 1 });
      if (ctx.attempt === 1) throw new Error("first time");
      return one;
    });
    expect(await recorder.play(definition.open())).toMatchObject({ kind: "fail", retryable: true });
    const again = await definition.open().next(recorder.context(2), new AbortController().signal);
    expect(again).toMatchObject({ kind: "complete", output: 1 });
    expect(recorder.journal).toHaveLength(1);
  });

  it("tries again when foreign work fails on the way back to where the function was", async () => {
    const recorder = new Recorder();
    let foreign = Promise.resolve();
    const definition = agent(async (ctx) => {
      await foreign;
      return await ctx.tool(echo, { n: 1 });
    });
    await recorder.play(definition.open());
    foreign = Promise.reject(new Error("no network"));
    expect(await recorder.play(definition.open())).toMatchObject({
      kind: "fail",
      retryable: true,
      error: { code: "agent_error", message: "no network" },
    });
  });

  it("refuses a function that goes on differently from its record", async () => {
    const call = (value: number) => (ctx: FunctionContext<Json>) => ctx.tool(echo, { n: value });
    const both = (ctx: FunctionContext<Json>) =>
      Promise.all([ctx.tool(echo, { n: 1 }), ctx.tool(echo, { n: 2 })]);
    const inTurn = async (ctx: FunctionContext<Json>) => [
      await ctx.tool(echo, { n: 1 }),
      await ctx.tool(echo, { n: 2 }),
    ];
    const cases: [
      (ctx: FunctionContext<Json>) => unknown,
      (ctx: FunctionContext<Json>) => unknown,
      RegExp,
    ][] = [
      [call(1), call(2), /site 0.*echo\(\{"n":1\}\).*now makes echo\(\{"n":2\}\)/],
      [call(1), (ctx) => ctx.now(), /echo.*now makes now\(null\)/],
      [call(1), () => 1, /ended without that call/],
      [call(1), (ctx) => ctx.continueAs(null), /ended without that call/],
      [both, call(1), /within 20 ms and waits for echo at site 0/],
      [both, inTurn, /site 1.*not make that call again/s],
      [inTurn, call(1), /ended without that call/],
      [
        inTurn,
        async (ctx) => [await call(1)(ctx), await ctx.branch("x", call(2))],
        /waits for echo at site x\/0/,
      ],
    ];
    for (const [old, changed, text] of cases) {
      const recorder = new Recorder();
      expect((await recorder.play(agent(old).open())).kind).toBe("complete");
      const session = agent(changed).open();
      const move = await recorder.play(session);
      expect(move).toMatchObject({ kind: "fail", retryable: false, error: { code: "JOURNAL_MISMATCH" } });
      expect(move.kind === "fail" ? move.error.message : "").toMatch(text);
      expect(move.kind === "fail" ? move.error.message : "").toMatch(/run_00000001.*new version/s);
      expect(await recorder.play(session)).toEqual(move);
    }
  });

  it("takes an end that came before the answer of a call that was made", async () => {
    const definition = agent((ctx) => {
      void ctx.tool(echo, { n: 1 });
      return tick().then(() => "first");
    });
    const recorder = new Recorder();
    expect(await recorder.play(definition.open())).toMatchObject({ output: "first" });
    expect(await recorder.play(definition.open())).toMatchObject({ output: "first" });
    expect(recorder.warnings).toEqual([]);
  });

  it("is silent about progress until it is past its record", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      ctx.progress("start", 0);
      await ctx.tool(echo, { n: 1 });
      ctx.progress("end", 1);
      return 1;
    });
    await recorder.play(definition.open(), echoed, 1);
    expect(recorder.deltas.map((delta) => delta.kind === "progress" && delta.message)).toEqual([
      "start",
      "end",
    ]);
    await recorder.play(definition.open());
    expect(recorder.deltas).toHaveLength(3);
  });
});

describe("long journals and long lives", () => {
  it("warns once at 1,000 recorded calls and refuses at 10,000", async () => {
    const recorder = new Recorder();
    const definition = agent(async (ctx) => {
      for (let i = 0; ; i++) {
        const ones = Array.from({ length: 500 }, (_one, at) => ctx.tool(echo, { n: i + at }));
        await Promise.all(ones);
      }
    });
    const move = await recorder.play(definition.open());
    expect(recorder.journal).toHaveLength(10_000);
    expect(recorder.warnings).toEqual([expect.stringMatching(/1000 recorded calls.*continueAs/s)]);
    expect(move).toMatchObject({ kind: "fail", retryable: false, error: { code: "JOURNAL_FULL" } });
    expect(JSON.stringify(move)).toContain("ctx.continueAs(state)");
  });

  it("continues as a new life with a checked input", async () => {
    let after = false;
    const definition = functionAgent({
      name: "f",
      version: "1",
      input: z.object({ n: z.number(), seen: z.array(z.number()).default([]) }),
      outputSchema: true,
      run: async (ctx) => {
        await ctx.continueAs({ n: 1 });
        after = true;
        return null;
      },
    });
    expect(await finish(definition)).toEqual({ kind: "continue_as", input: { n: 1, seen: [] } });
    await tick();
    expect(after).toBe(false);
    const wrong = agent((ctx) => ctx.continueAs((() => 1) as never));
    expect(await finish(wrong)).toMatchObject({ kind: "fail", error: { code: "INVALID_INPUT" } });
  });

  it("is silent for ever once it was disposed of", async () => {
    const seen: string[] = [];
    const definition = agent(async (ctx) => {
      ctx.signal.addEventListener("abort", () => seen.push("aborted"));
      await tick();
      await tick();
      seen.push("went on");
      await Promise.race([
        ctx.tool(echo, { n: 1 }),
        ctx.branch("b", () => 1),
        ctx.now(),
        ctx.continueAs(null),
      ]);
      seen.push("settled");
    });
    const session = definition.open();
    void session.next(new Recorder().context(), new AbortController().signal);
    session.dispose();
    for (let i = 0; i < 5; i++) await tick();
    expect(seen).toEqual(["aborted", "went on"]);
  });
});
