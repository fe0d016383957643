import type { Json } from "../../rules/json.ts";

/** A provider's refusal, as a script gives it. */
export interface ScriptedFault {
  readonly status: number;
  readonly message?: string;
  /** The provider's own code, such as `context_length_exceeded`. */
  readonly code?: string;
  /** Value of the `retry-after` header: seconds or a date. */
  readonly retryAfter?: string | number;
  readonly headers?: Readonly<Record<string, string>>;
}

const ANY_AI_ERROR: unique symbol = Symbol.for("vercel.ai.error");
const API_CALL_ERROR: unique symbol = Symbol.for("vercel.ai.error.AI_APICallError");

/**
 * The error that a provider package raises for an HTTP status. It is recognised by name, fields and registered symbols,
 * so `APICallError.isInstance` holds although nothing of the AI SDK is loaded.
 */
export class ScriptedProviderError extends Error {
  override readonly name: string = "AI_APICallError";
  readonly url = "scripted://model";
  readonly requestBodyValues: Json = {};
  readonly statusCode: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseBody: string;
  readonly isRetryable: boolean;
  readonly [ANY_AI_ERROR] = true;
  readonly [API_CALL_ERROR] = true;

  constructor(fault: ScriptedFault) {
    const message = fault.message ?? `scripted HTTP ${fault.status}`;
    super(message);
    this.statusCode = fault.status;
    this.isRetryable = fault.status === 408 || fault.status === 429 || fault.status >= 500;
    this.responseHeaders = {
      ...fault.headers,
      ...(fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) }),
    };
    this.responseBody = JSON.stringify({
      error: { message, ...(fault.code === undefined ? {} : { code: fault.code }) },
    });
  }
}
