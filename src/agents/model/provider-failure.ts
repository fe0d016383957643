import type { Json } from "../../rules/json.ts";
import type { CallError } from "../../domain/tool-batch/call-outcome.ts";

/** A provider's failure as the runtime acts on it. */
export interface ProviderFailure {
  readonly error: CallError;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  /** The provider refused before any work, so nothing can have been billed. */
  readonly refused: boolean;
}

/*
 * Errors are recognised by their name and fields and not by a class: two copies of the provider package then agree, and
 * nothing of it is needed at run time. Headers, URLs and request bodies never go into an error (L32).
 */

/**
 * @param now milliseconds, for a `retry-after` that is a date
 * @param phase whether the answer had begun
 */
export function providerFailure(
  thrown: unknown,
  model: string,
  now: number,
  phase: "start" | "stream",
): ProviderFailure {
  const seen = look(thrown);
  // Provider packages wrap a broken stream as a failed call whose status is the 200 it began with.
  const begun = phase === "stream" || seen.begun;
  const from = (
    code: string,
    what: string,
    retryable: boolean,
    retryAfterMs: number | null = null,
  ): ProviderFailure => ({
    error: { code, message: what, details: details(seen, model) },
    retryable,
    retryAfterMs,
    refused: !begun && (seen.status !== undefined || NOT_SENT.has(seen.causeCode ?? "")),
  });
  const said = seen.message === "" ? "" : ` It said: ${seen.message}`;
  const { status } = seen;

  if (seen.name === "AI_LoadAPIKeyError" || status === 401 || status === 403 || AUTH.test(seen.kind)) {
    // The provider's own words may repeat the key.
    return from(
      "provider_auth",
      `The provider of ${model} refused the credentials${status === undefined ? "" : ` (HTTP ${status})`}. Set a valid API key for it, with access to this model, where the worker runs, and start the run again.`,
      false,
    );
  }
  if (status !== 429 && isOverflow(seen)) {
    return from(
      "context_overflow",
      `The conversation no longer fits the context window of ${model}. Use a model with a larger window, shorter tool results, or delegate parts of the work to children that start with a context of their own.${said}`,
      false,
    );
  }
  if (status === 402 || QUOTA.test(seen.kind)) {
    return from(
      "provider_quota",
      `The account at the provider of ${model} has no quota left. Raise its limit or pay its bill, and start the run again.${said}`,
      false,
    );
  }
  if (status === 429 || RATE_LIMIT.test(seen.kind)) {
    const wait = retryAfterMs(seen.headers, now);
    return from("rate_limited", `The provider of ${model} limits the rate of requests.${said}`, true, wait);
  }
  if (UNREADABLE.has(seen.name)) {
    return from("response_invalid", `The answer of ${model} could not be read.${said}`, true);
  }
  if (
    status === undefined
      ? REJECTED_HERE.has(seen.name) || REJECTED.test(seen.kind)
      : status < 500 && !RETRYABLE_4XX.has(status)
  ) {
    return from(
      "provider_rejected",
      `The provider of ${model} rejected the request${status === undefined ? "" : ` (HTTP ${status})`}. Change the agent or its settings accordingly.${said}`,
      false,
    );
  }
  if (begun && status === undefined && seen.kind === "") {
    return from("stream_incomplete", `The answer of ${model} broke off before its end.${said}`, true);
  }
  return from(
    "provider_unavailable",
    `The provider of ${model} ${status === undefined ? (begun ? "broke off its answer" : "could not be reached") : `answered with HTTP ${status}`}.${said}`,
    true,
    retryAfterMs(seen.headers, now),
  );
}

const RETRYABLE_4XX = new Set([408, 409, 425]);
/** Socket errors after which the request was certainly not sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH"]);
const SOCKET_CODE = /^(E[A-Z0-9]+|UND_ERR_[A-Z_]+)$/;
/** The answer was not what the provider package expects: garbage, or a broken event. */
const UNREADABLE = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError",
]);
/** Refused by the provider package itself: trying again gives the same. */
const REJECTED_HERE = new Set([
  "AI_InvalidArgumentError",
  "AI_InvalidPromptError",
  "AI_LoadSettingError",
  "AI_NoSuchModelError",
  "AI_UnsupportedFunctionalityError",
]);

const AUTH = /\b(authentication_error|permission_error|invalid_api_key|permission_denied|unauthenticated)\b/i;
const QUOTA = /\b(insufficient_quota|billing_error|billing_hard_limit_reached|insufficient_credits)\b/i;
const RATE_LIMIT = /\b(rate_limit_error|rate_limit_exceeded|too_many_requests|throttlingexception)\b/i;
const REJECTED = /\b(invalid_request_error|not_found_error|model_not_found|request_too_large)\b/i;
const OVERFLOW_KIND = /\b(context_length_exceeded|context_window_exceeded|exceed_context_size_error)\b/i;
const OVERFLOW_MESSAGE =
  /prompt is too long|input is too long|maximum context length|context (length|window|size|limit)[^.]*(exceed|too|larger|smaller|full)|(exceed|larger than|beyond)[^.]*context (length|window|size|limit)|input token count[^.]*exceeds|too many (input|prompt) tokens/i;

function isOverflow(seen: Seen): boolean {
  if (seen.status !== undefined && (seen.status < 400 || seen.status >= 500)) return false;
  return OVERFLOW_KIND.test(seen.kind) || OVERFLOW_MESSAGE.test(seen.message);
}

/** What can be seen of an error, whoever made it. */
interface Seen {
  readonly name: string;
  /** The HTTP status, where it tells of a failure. */
  readonly status: number | undefined;
  /** The status was a success, so the failure came after it. */
  readonly begun: boolean;
  /** Type and code as the provider names them. */
  readonly kind: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Code of the socket error underneath. */
  readonly causeCode: string | undefined;
}

function look(thrown: unknown): Seen {
  const error = record(thrown);
  const body = record(record(error["data"])["error"] ?? parsedBody(error["responseBody"])["error"]);
  // Errors inside a stream are the provider's plain objects, sometimes one level down.
  const inner = record(error["error"]);
  const said = [error, inner, body].flatMap((one) => [one["type"], one["code"], one["status"]]);
  const status = error["statusCode"];
  const headers = record(error["responseHeaders"]) as Record<string, string>;
  const own = [error["message"], inner["message"], thrown].find((one) => typeof one === "string");
  const below = record(error["cause"])["message"];
  const message =
    typeof own === "string" && typeof below === "string" && !own.includes(below) ? `${own}: ${below}` : own;
  return {
    name: typeof error["name"] === "string" ? error["name"] : "",
    status: typeof status === "number" && status >= 300 ? status : undefined,
    begun: typeof status === "number" && status >= 200 && status < 300,
    kind: withoutSecrets(said.filter((one) => typeof one === "string" && !SOCKET_CODE.test(one)).join(" ")),
    message: withoutSecrets(typeof message === "string" ? message : ""),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    causeCode: socketCode(error, 0),
  };
}

function parsedBody(body: unknown): Record<string, unknown> {
  if (typeof body !== "string") return {};
  try {
    return record(JSON.parse(body));
  } catch {
    return {};
  }
}

function socketCode(error: Record<string, unknown>, depth: number): string | undefined {
  const code = error["code"];
  if (typeof code === "string" && NOT_SENT.has(code)) return code;
  return depth < 4 && error["cause"] !== undefined
    ? socketCode(record(error["cause"]), depth + 1)
    : undefined;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function details(seen: Seen, model: string): Json {
  return {
    model,
    ...(seen.status === undefined ? {} : { status: seen.status }),
    ...(seen.kind === "" ? {} : { kind: seen.kind }),
  };
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date; null if there is none. */
export function retryAfterMs(headers: Readonly<Record<string, string>>, now: number): number | null {
  const exact = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (Number.isFinite(exact)) return Math.max(0, Math.ceil(exact));
  const text = headers["retry-after"]?.trim() ?? "";
  if (text === "") return null;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, Math.ceil(seconds * 1000));
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

const MAX_MESSAGE = 500;

/** Providers repeat keys in their messages, and an address may carry one (L32). */
export function withoutSecrets(message: string): string {
  const clean = message
    .replaceAll(/\/\/[^/\s@]+@/g, "//[redacted]@")
    .replaceAll(/([?&][^=&\s]*(?:key|token|secret|signature)[^=&\s]*=)[^&\s]+/gi, "$1[redacted]")
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, "$1 [redacted]")
    .replaceAll(/\b(?:sk|pk|rk|gsk|xai|key|r8|hf|AIza)[-_]?[A-Za-z0-9*_-]{12,}/g, "[redacted]");
  return clean.length <= MAX_MESSAGE ? clean : `${clean.slice(0, MAX_MESSAGE)}…`;
}
