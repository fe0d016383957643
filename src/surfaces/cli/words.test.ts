import { expect, test } from "vitest";
import { ErrandError } from "../../domain/errand-error.ts";
import { NO_USAGE } from "../../domain/budget/usage.ts";
import { failureOf } from "./cli-error.ts";
import { jsonText } from "./commands/option-values.ts";
import { EXIT, EXIT_HELP } from "./exit-code.ts";
import { costText, countText, cut, durationText, parseDuration, usageText, wrap } from "./measure.ts";
import { nearest } from "./nearest.ts";
import { errandCommand, shellWord } from "./shell-command.ts";
import { styleOf } from "./style.ts";
import { sampleAnswer } from "./ticket-answer.ts";

test.each([
  [0, "0ms"],
  [840, "840ms"],
  [999.6, "1.0s"],
  [12_340, "12.3s"],
  [59_949, "59.9s"],
  [59_999, "1m00s"],
  [184_000, "3m04s"],
  [7_500_000, "2h05m"],
  [273_600_000, "3d04h"],
])("%d ms is shown as %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["30d", 2_592_000_000],
  ["30", null],
  ["-1s", null],
  ["soon", null],
])("the time %s is %s ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test("usage is shown where there is some, and unknown counts are not zero", () => {
  expect(usageText(NO_USAGE)).toBe("");
  expect(usageText({ ...NO_USAGE, inputTokens: 1_200, outputTokens: 300 })).toBe("1.5k tok");
  expect(usageText({ ...NO_USAGE, unreportedModelCalls: 1 })).toBe("0+ tok");
  expect([countText(999), countText(999_949), countText(999_950)]).toEqual(["999", "999.9k", "1.0M"]);
  expect([costText(1_234_567), costText(850)]).toEqual(["1.23", "0.00085"]);
});

test("a cut text keeps to its columns, wide characters and colours included", () => {
  expect(cut("abcdef", 4)).toBe("abc…");
  expect(cut("日本語", 4)).toBe("日…");
  expect(cut("\u001b[31mabcdef\u001b[39m", 4)).toBe("\u001b[31mabc…\u001b[39m");
  expect(wrap("one two three four", 9, 2)).toEqual(["one two", "three fo…"]);
});

test("a word for the shell comes back as it was", () => {
  expect(shellWord("tkt_1")).toBe("tkt_1");
  expect(errandCommand(["resume", "tkt_1", "--answer", `{"it's":1}`], ["--store", "a b.db"])).toBe(
    `errand resume tkt_1 --answer '{"it'\\''s":1}' --store 'a b.db'`,
  );
});

test("a sample answer has the shape that is asked for", () => {
  expect(sampleAnswer({ type: "boolean" })).toBe(true);
  expect(sampleAnswer({ enum: ["red", "blue"] })).toBe("red");
  expect(sampleAnswer({ type: "integer", minimum: 5 })).toBe(5);
  expect(sampleAnswer({ anyOf: [{ type: "array", items: { type: "string" } }] })).toEqual(["…"]);
  expect(
    sampleAnswer({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "number" } },
      required: ["b"],
    }),
  ).toEqual({ b: 1 });
});

test("what was meant is found by its beginning or by a few letters", () => {
  expect(nearest("run_7d5d", ["run_1111aaaa", "run_7d5d845f"])).toBe("run_7d5d845f");
  expect(nearest("partty", ["writer", "party"])).toBe("party");
  expect(nearest("zebra", ["writer", "party"])).toBeNull();
});

test("text that is not JSON is explained by what a shell does to it", () => {
  expect(jsonText('{"a":1}', "--input")).toEqual({ a: 1 });
  expect(() => jsonText("blue", "--answer")).toThrow(/^--answer is not JSON/);
  expect(failureOf(caught(() => jsonText("blue", "--answer"))).fix).toContain(`'"blue"'`);
  expect(failureOf(caught(() => jsonText("{a:1}", "--answer"))).fix).toContain("single quotes");
});

test("an error is shown as code, sentence and fix, and decides the exit status", () => {
  const error = new ErrandError("NOT_FOUND", "There is no run run_1.", "Look again.");
  expect(failureOf(error)).toEqual({
    code: "NOT_FOUND",
    message: "There is no run run_1.",
    fix: "Look again.",
    exitCode: EXIT.notFound,
  });
  expect(failureOf(new TypeError("oops"))).toMatchObject({ code: "INTERNAL", exitCode: EXIT.internal });
  for (const code of Object.values(EXIT)) expect(EXIT_HELP).toMatch(new RegExp(`^  ${code} `, "m"));
});

test("NO_COLOR wins over FORCE_COLOR, which wins over the kind of stream; --no-color wins over all", () => {
  const colored = (isTTY: boolean, env: NodeJS.ProcessEnv, wanted?: boolean): boolean =>
    styleOf({ isTTY }, env, wanted).color.isColorSupported;
  expect(colored(true, {})).toBe(true);
  expect(colored(false, {})).toBe(false);
  expect(colored(true, { TERM: "dumb" })).toBe(false);
  expect(colored(false, { FORCE_COLOR: "1" })).toBe(true);
  expect(colored(true, { FORCE_COLOR: "0" })).toBe(false);
  expect(colored(true, { FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false);
  expect(colored(true, { FORCE_COLOR: "1" }, false)).toBe(false);
});

function caught(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
