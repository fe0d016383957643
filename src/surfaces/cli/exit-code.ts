import type { ErrorCode } from "../../domain/errand-error.ts";

/** What the program's exit status says; scripts rely on the numbers. */
export const EXIT = {
  done: 0,
  internal: 1,
  usage: 2,
  runFailed: 3,
  waitsForPerson: 4,
  notFound: 5,
  conflict: 6,
  store: 7,
  timeout: 124,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The table as `errand --help` prints it. */
export const EXIT_HELP = `Exit codes:
  0    done
  1    internal error
  2    wrong usage, input or config
  3    the run failed, was stopped or canceled, or its outcome is unknown
  4    waiting on a person: an open ticket, and nothing else to do
  5    not found
  6    conflict, or too late
  7    the store cannot be reached, is busy, or is damaged
  124  timed out
  130  interrupted`;

const BY_ERROR = {
  INVALID_ID: EXIT.usage,
  INVALID_INPUT: EXIT.usage,
  INVALID_AGENT: EXIT.usage,
  INVALID_TOOL: EXIT.usage,
  INVALID_CONFIG: EXIT.usage,
  UNKNOWN_AGENT: EXIT.notFound,
  NOT_FOUND: EXIT.notFound,
  START_CONFLICT: EXIT.conflict,
  RUN_FAILED: EXIT.runFailed,
  RUN_CANCELED: EXIT.runFailed,
  RUN_STOPPED: EXIT.runFailed,
  RUN_INDETERMINATE: EXIT.runFailed,
  RUN_ERASED: EXIT.notFound,
  WAIT_TIMEOUT: EXIT.timeout,
  TICKET_REQUIRED: EXIT.usage,
  TICKET_CLOSED: EXIT.conflict,
  TICKET_DECIDED: EXIT.conflict,
  TICKET_MISMATCH: EXIT.conflict,
  TICKET_ANSWER_INVALID: EXIT.usage,
  OPERATION_CONFLICT: EXIT.conflict,
  STALE_CLAIM: EXIT.conflict,
  CALL_FAILED: EXIT.runFailed,
  JOURNAL_MISMATCH: EXIT.runFailed,
  JOURNAL_FULL: EXIT.runFailed,
  STORE_BUSY: EXIT.store,
  STORE_FULL: EXIT.store,
  STORE_CORRUPT: EXIT.store,
  STORE_NEWER_SCHEMA: EXIT.store,
  STORE_UNAVAILABLE: EXIT.store,
  STORE_CLOSED: EXIT.store,
  ADAPTER_CONFIGURATION: EXIT.usage,
  ADAPTER_CONNECTION: EXIT.store,
  CLOSED: EXIT.internal,
} as const satisfies Record<ErrorCode, ExitCode>;

export function exitCodeOf(code: ErrorCode): ExitCode {
  return BY_ERROR[code];
}
