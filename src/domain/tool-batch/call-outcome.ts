import type { Json } from "../../rules/json.ts";

/** An error as the model, the function agent or the caller sees it. */
export interface CallError {
  readonly code: string;
  readonly message: string;
  readonly details?: Json;
}

/** The one answer of an ended call. */
export type CallOutcome =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: CallError };

export function failed(code: string, message: string, details?: Json): CallOutcome {
  return { ok: false, error: details === undefined ? { code, message } : { code, message, details } };
}
