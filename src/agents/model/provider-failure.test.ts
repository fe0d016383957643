import { APICallError } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { type ProviderFailure, providerFailure } from "./provider-failure.ts";
import { type ScriptedFault, ScriptedProviderError } from "./index.ts";

const NOW = Date.UTC(2026, 0, 1);

function failureOf(fault: ScriptedFault | Error): ProviderFailure {
  const error = fault instanceof Error ? fault : new ScriptedProviderError(fault);
  return providerFailure(error, "acme/large", NOW, "start");
}

describe("a provider's failure", () => {
  test.each([
    [{ status: 429, retryAfter: 2 }, "rate_limited", true, 2000],
    [{ status: 429, retryAfter: "0.5" }, "rate_limited", true, 500],
    [{ status: 429, headers: { "Retry-After-Ms": "40" } }, "rate_limited", true, 40],
    [{ status: 429 }, "rate_limited", true, null],
    [{ status: 503, retryAfter: new Date(NOW + 5000).toUTCString() }, "provider_unavailable", true, 5000],
    [{ status: 529, retryAfter: new Date(NOW - 5000).toUTCString() }, "provider_unavailable", true, 0],
    [{ status: 500, retryAfter: "soon" }, "provider_unavailable", true, null],
    [{ status: 408 }, "provider_unavailable", true, null],
    [{ status: 429, code: "insufficient_quota" }, "provider_quota", false, null],
    [{ status: 401 }, "provider_auth", false, null],
    [{ status: 403 }, "provider_auth", false, null],
    [{ status: 404 }, "provider_rejected", false, null],
    [{ status: 422, message: "temperature must be at most 2" }, "provider_rejected", false, null],
    [{ status: 400, code: "context_length_exceeded" }, "context_overflow", false, null],
    [{ status: 400, message: "prompt is too long: 250001 tokens > 200000" }, "context_overflow", false, null],
    [
      { status: 400, message: "This model's maximum context length is 8192 tokens." },
      "context_overflow",
      false,
      null,
    ],
    [
      { status: 400, message: "The input token count (9) exceeds the maximum number of tokens allowed (8)." },
      "context_overflow",
      false,
      null,
    ],
    [
      { status: 400, message: "the request exceeds the available context size" },
      "context_overflow",
      false,
      null,
    ],
  ] as const)("%j is %s", (error, code, retryable, retryAfterMs) => {
    expect(failureOf(error)).toMatchObject({ error: { code }, retryable, retryAfterMs });
  });

  test.each([
    [{ type: "overloaded_error", message: "Overloaded" }, "provider_unavailable", true],
    [{ type: "rate_limit_error", message: "slow down" }, "rate_limited", true],
    [{ type: "invalid_request_error", message: "prompt is too long: 9 > 8" }, "context_overflow", false],
    [{ type: "invalid_request_error", message: "no such field" }, "provider_rejected", false],
    [{ error: { type: "authentication_error", message: "invalid x-api-key" } }, "provider_auth", false],
  ])("inside the stream, %j, is %s", (inStream, code, retryable) => {
    expect(providerFailure(inStream, "acme/large", NOW, "stream")).toMatchObject({
      error: { code },
      retryable,
      refused: false,
    });
  });

  test("of the network is retried", () => {
    expect(failureOf(new TypeError("fetch failed"))).toMatchObject({
      error: { code: "provider_unavailable" },
      retryable: true,
    });
  });

  test("repeats the provider's words and none of its secrets (L32)", () => {
    const said = failureOf({
      status: 400,
      message:
        "bad request to https://user:hunter2@host/v1?api_key=abcdef with Bearer abcdefghijkl and sk-proj-0123456789abcdef",
      headers: { "set-cookie": "session=42" },
    });
    expect(said.error.message).toContain("bad request to https://[redacted]@host/v1?api_key=[redacted]");
    expect(JSON.stringify(said)).not.toMatch(/hunter2|abcdef|session=42|0123456789/);
    const auth = failureOf({ status: 401, message: "Incorrect API key provided: sk-12***34" });
    expect(JSON.stringify(auth)).not.toContain("sk-12");
  });

  test("made by a script is an API error for the AI SDK too", () => {
    expect(APICallError.isInstance(new ScriptedProviderError({ status: 429 }))).toBe(true);
  });
});
