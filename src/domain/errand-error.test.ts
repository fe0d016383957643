import { expect, expectTypeOf, it } from "vitest";
import { ERROR_CODES, ErrandError, type ErrorCode } from "./errand-error.ts";

it("says the code, what happened and what to do next, and keeps the cause", () => {
  const cause = new Error("below");
  const error = new ErrandError("STORE_BUSY", "The file is locked.", "Try again.", {
    cause,
    details: { pid: 7 },
  });
  expect(error.message).toBe("[STORE_BUSY] The file is locked. Try again.");
  expect(error).toMatchObject({
    name: "ErrandError",
    code: "STORE_BUSY",
    fix: "Try again.",
    cause,
    details: { pid: 7 },
  });
});

it("is recognised by its mark, also when another copy of the package made it", () => {
  const error = new ErrandError("CLOSED", "It is closed.", "Open another.");
  expect(ErrandError.is(error)).toBe(true);
  expect(ErrandError.is(Object.assign(new Error("copy"), { [Symbol.for("errand.error")]: true }))).toBe(true);
  for (const other of [new Error("x"), { code: "CLOSED" }, null, undefined, "CLOSED"])
    expect(ErrandError.is(other)).toBe(false);
});

it("has a closed table of codes, each saying who may try again", () => {
  for (const [code, { retry }] of Object.entries(ERROR_CODES)) {
    expect(code).toMatch(/^[A-Z][A-Z_]+$/);
    expect(["no", "caller", "later"]).toContain(retry);
  }
  expectTypeOf<string>().not.toExtend<ErrorCode>();
});
