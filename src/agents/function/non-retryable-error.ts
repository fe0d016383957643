import { jsonCopy } from "../../rules/json-copy.ts";
import type { Json } from "../../rules/json.ts";

const MARK = Symbol.for("errand.non-retryable-error");

/** Thrown by a function agent that knows a new attempt would fail as well: the Run ends failed at once. */
export class NonRetryableError extends Error {
  override readonly name: string = "NonRetryableError";
  readonly code: string;
  readonly details: Json | undefined;
  readonly [MARK] = true;

  constructor(
    message: string,
    options: { readonly code?: string; readonly details?: Json; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? "agent_error";
    this.details = options.details === undefined ? undefined : jsonCopy(options.details);
  }

  static is(value: unknown): value is NonRetryableError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
  }
}
