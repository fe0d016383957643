import { jsonCopy } from "../rules/json-copy.ts";
import type { Json } from "../rules/json.ts";

const MARK = Symbol.for("errand.tool-failure");

/** Thrown by a tool that wants its caller, a model as a rule, to see a code of its own. */
export class ToolFailure extends Error {
  override readonly name: string = "ToolFailure";
  readonly code: string;
  readonly details: Json | undefined;
  readonly [MARK] = true;

  constructor(
    code: string,
    message: string,
    options: { readonly details?: Json; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(code)) {
      throw new TypeError(
        `A failure's code is 1 to 64 letters, digits, "_", "." and "-", not ${JSON.stringify(code)}`,
      );
    }
    this.code = code;
    this.details = options.details === undefined ? undefined : jsonCopy(options.details);
  }

  static is(value: unknown): value is ToolFailure {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
  }
}
