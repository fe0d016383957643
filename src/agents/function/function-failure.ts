import { ERROR_CODES, ErrandError } from "../../domain/errand-error.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";
import { jsonCopy } from "../../rules/json-copy.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { Move } from "../../runtime/ports/carrier.ts";
import type { RecordedCall } from "../../runtime/ports/journal.ts";
import { NonRetryableError } from "./non-retryable-error.ts";

export type FailMove = Extract<Move, { kind: "fail" }>;

export interface FoundCall {
  readonly site: string;
  readonly tool: string;
  readonly input: Json;
}

export function failMove(error: CallError, retryable: boolean): FailMove {
  return { kind: "fail", error, retryable, retryAfterMs: null, usage: null };
}

/** What the function sees of a call that failed. */
export function callFailed(call: FoundCall, error: CallError): ErrandError {
  return new ErrandError(
    "CALL_FAILED",
    `Call ${call.site} of ${call.tool} answered ${error.code}: ${error.message.replace(/[.]$/, "")}.`,
    "Catch this error where the function can go on without the answer.",
    { cause: error, details: { ...error } },
  );
}

/** What a Run makes of an error that its function did not catch. */
export function thrownMove(error: unknown): FailMove {
  if (NonRetryableError.is(error)) {
    return failMove(callError(error.code, error.message, error.details), false);
  }
  if (ErrandError.is(error)) {
    const retry = (ERROR_CODES as Partial<Record<string, { readonly retry: string }>>)[error.code]?.retry;
    return failMove(callError(error.code, `${error.what} ${error.fix}`, error.details), retry === "later");
  }
  const message = error instanceof Error ? error.message : String(error);
  return failMove(
    callError("agent_error", message === "" ? "The function threw without a message." : message),
    true,
  );
}

function callError(code: string, message: string, details?: unknown): CallError {
  if (details === undefined) return { code, message };
  try {
    return { code, message, details: jsonCopy(details) };
  } catch {
    return { code, message };
  }
}

const NEW_VERSION =
  "Publish the changed function under a new version, or finish the runs that are under way with the old code.";

/** The function goes on differently from its record, so nothing it would do next can be trusted. */
export function mismatchMove(runId: string, recorded: RecordedCall, found: FoundCall | string): FailMove {
  const now = typeof found === "string" ? found : `the function now makes ${described(found)}`;
  const site = recorded.site ?? "without a site";
  const error = new ErrandError(
    "JOURNAL_MISMATCH",
    `Run ${runId}: at site ${site} the journal has ${described(recorded)} (step ${recorded.step}), but ${now}.`,
    NEW_VERSION,
    {
      details: {
        site: recorded.site,
        recorded: { tool: recorded.tool, input: recorded.input },
        found: typeof found === "string" ? null : { site: found.site, tool: found.tool, input: found.input },
      },
    },
  );
  return thrownMove(error);
}

export function journalFullMove(runId: string, limit: number): FailMove {
  return thrownMove(
    new ErrandError(
      "JOURNAL_FULL",
      `Run ${runId} would record more than ${limit} calls.`,
      "Call `ctx.continueAs(state)` from time to time: it goes on with an empty journal.",
      { details: { limit } },
    ),
  );
}

function described(call: { readonly tool: string; readonly input: Json }): string {
  const input = canonicalJson(call.input);
  return `${call.tool}(${input.length > 200 ? `${input.slice(0, 200)}…` : input})`;
}
