/**
 * Every error code that Errand raises, closed. `retry` says whether and by whom trying again makes sense:
 * `no` never as it stands, `caller` after the caller changed something, `later` the same call may go through later.
 * Each code has a page in `docs/errors/` (a check compares the two).
 */
export const ERROR_CODES = {
  INVALID_ID: { retry: "caller" },
  INVALID_INPUT: { retry: "caller" },
  INVALID_AGENT: { retry: "caller" },
  INVALID_TOOL: { retry: "caller" },
  INVALID_CONFIG: { retry: "caller" },
  UNKNOWN_AGENT: { retry: "caller" },
  NOT_FOUND: { retry: "caller" },
  START_CONFLICT: { retry: "no" },
  RUN_FAILED: { retry: "no" },
  RUN_CANCELED: { retry: "no" },
  RUN_STOPPED: { retry: "no" },
  RUN_INDETERMINATE: { retry: "no" },
  RUN_ERASED: { retry: "no" },
  WAIT_TIMEOUT: { retry: "later" },
  TICKET_REQUIRED: { retry: "caller" },
  TICKET_CLOSED: { retry: "no" },
  TICKET_DECIDED: { retry: "no" },
  TICKET_MISMATCH: { retry: "caller" },
  TICKET_ANSWER_INVALID: { retry: "caller" },
  OPERATION_CONFLICT: { retry: "no" },
  STALE_CLAIM: { retry: "no" },
  CALL_FAILED: { retry: "caller" },
  JOURNAL_MISMATCH: { retry: "no" },
  JOURNAL_FULL: { retry: "caller" },
  STORE_BUSY: { retry: "later" },
  STORE_FULL: { retry: "later" },
  STORE_CORRUPT: { retry: "no" },
  STORE_NEWER_SCHEMA: { retry: "caller" },
  STORE_UNAVAILABLE: { retry: "later" },
  STORE_CLOSED: { retry: "caller" },
  ADAPTER_CONFIGURATION: { retry: "caller" },
  ADAPTER_CONNECTION: { retry: "later" },
  CLOSED: { retry: "caller" },
} as const satisfies Record<string, { readonly retry: "no" | "caller" | "later" }>;

export type ErrorCode = keyof typeof ERROR_CODES;

const MARK = Symbol.for("errand.error");

/** The one error class of Errand. The message reads `[CODE] what happened, with ids. What to do next.` */
export class ErrandError extends Error {
  override readonly name: string = "ErrandError";
  readonly code: ErrorCode;
  /** What happened, without the code and without what to do. */
  readonly what: string;
  /** What to do next, in one sentence. */
  readonly fix: string;
  /** Ids and figures of this occurrence, for programs. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly [MARK] = true;

  constructor(
    code: ErrorCode,
    what: string,
    fix: string,
    options: { readonly cause?: unknown; readonly details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(`[${code}] ${what} ${fix}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.what = what;
    this.fix = fix;
    this.details = options.details ?? {};
  }

  /** Recognises an ErrandError by a registered symbol, so that two copies of the package agree. */
  static is(value: unknown): value is ErrandError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
  }
}
