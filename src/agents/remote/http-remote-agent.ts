import { setTimeout as pause } from "node:timers/promises";
import { ErrandError } from "../../domain/errand-error.ts";
import type { Json } from "../../rules/json.ts";
import type { RemoteAgentPort, RemoteStatus } from "../../runtime/ports/remote-agent.ts";
import { readRemoteStatus } from "./remote-status.ts";

export interface HttpRemoteAgentOptions {
  /** Where the peer serves `/runs/:id`, for example `https://agents.example/v1`. */
  readonly baseUrl: string;
  /** Sent with every request; a function is asked each time, so that credentials may change. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);
  /** How often one request is repeated when the peer is out of reach or overloaded. Default 4. */
  readonly retries?: number;
  /** For one try. Default 10,000. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** Overload and time-outs pass; every other refusal stands until somebody changes something. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

interface Request {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly body?: Json;
}

type Tried =
  | { readonly kind: "said"; readonly status: RemoteStatus }
  | {
      readonly kind: "passing";
      readonly what: string;
      readonly retryAfterMs: number;
      readonly cause?: unknown;
    };

/**
 * A peer behind four JSON requests: `PUT /runs/:id` starts or finds, `GET /runs/:id` tells the status,
 * `POST /runs/:id/answers/:questionId` answers, `POST /runs/:id/cancel` asks to cancel. Each one answers with the status,
 * and each may be repeated.
 */
export function httpRemoteAgent(options: HttpRemoteAgentOptions): RemoteAgentPort {
  const base = readBaseUrl(options.baseUrl);
  const { retries = 4, timeoutMs = 10_000 } = options;
  const send = options.fetch ?? fetch;

  async function ask(request: Request, signal: AbortSignal): Promise<RemoteStatus> {
    for (let tries = 1; ; tries++) {
      const tried = await attempt(request, signal);
      if (tried.kind === "said") return tried.status;
      if (tries > retries) {
        throw new ErrandError(
          "ADAPTER_CONNECTION",
          `${request.method} ${base}${request.path} failed ${tries} times, at last with: ${tried.what}.`,
          "Check that the peer runs and can be reached from here; the run tries again by itself.",
          { cause: tried.cause, details: { tries } },
        );
      }
      const backoff = FIRST_PAUSE_MS * 2 ** (tries - 1) * (0.5 + Math.random() / 2);
      await pause(Math.min(MAX_PAUSE_MS, Math.max(backoff, tried.retryAfterMs)), undefined, { signal });
    }
  }

  async function attempt({ method, path, body }: Request, signal: AbortSignal): Promise<Tried> {
    const own = typeof options.headers === "function" ? options.headers() : options.headers;
    let response: Response;
    let text: string;
    try {
      response = await send(`${base}${path}`, {
        method,
        redirect: "manual",
        headers: {
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...own,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      text = await response.text();
    } catch (cause) {
      signal.throwIfAborted();
      return { kind: "passing", what: reasonOf(cause), retryAfterMs: 0, cause };
    }
    const { status } = response;
    if (status >= 500 || PASSING.has(status)) {
      return { kind: "passing", what: `HTTP ${status}`, retryAfterMs: retryAfterMs(response) };
    }
    const said = parseStatus(text);
    // A 404 that speaks the protocol is an answer; any other is a wrong address.
    if (said !== null && (response.ok || (status === 404 && said.kind === "unknown"))) {
      return { kind: "said", status: said };
    }
    throw new ErrandError(
      "ADAPTER_CONFIGURATION",
      response.ok
        ? `${method} ${base}${path} answered HTTP ${status} with something that is no status of a run: ${excerpt(text)}.`
        : `${method} ${base}${path} answered HTTP ${status}: ${excerpt(text)}.`,
      remedy(status),
      { details: { status } },
    );
  }

  const run = (id: string): string => `/runs/${encodeURIComponent(id)}`;
  return {
    start({ childRunId, agent, goal, input, outputSchema }, signal) {
      const body = { agent, goal, input, outputSchema };
      return ask({ method: "PUT", path: run(childRunId), body }, signal);
    },
    status: (id, signal) => ask({ method: "GET", path: run(id) }, signal),
    answer: (id, questionId, answer, signal) =>
      ask(
        { method: "POST", path: `${run(id)}/answers/${encodeURIComponent(questionId)}`, body: { answer } },
        signal,
      ),
    cancel: (id, reason, signal) =>
      ask({ method: "POST", path: `${run(id)}/cancel`, body: { reason } }, signal),
    reconnect: (id, signal) => ask({ method: "GET", path: run(id) }, signal),
  };
}

function readBaseUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (
    url === null ||
    !["http:", "https:"].includes(url.protocol) ||
    url.username !== "" ||
    url.search !== ""
  ) {
    throw new ErrandError(
      "INVALID_CONFIG",
      "The `baseUrl` of a remote agent is no plain http or https address.",
      "Give an address such as https://agents.example/v1, without credentials and query; those go into `headers`.",
    );
  }
  return url.href.replace(/[/#]+$/, "");
}

function parseStatus(text: string): RemoteStatus | null {
  try {
    return readRemoteStatus(JSON.parse(text) as Json);
  } catch {
    return null;
  }
}

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0;
}

function remedy(status: number): string {
  if (status < 300) return "Check `baseUrl`: it must lead to a peer that speaks this protocol.";
  if (status < 400) return "Give the final address as `baseUrl`; redirects are not followed.";
  if (status === 401 || status === 403) return "Check the credentials in `headers`.";
  if (status === 404 || status === 405) return "Check `baseUrl` and that the peer serves this agent.";
  if (status === 409) return "The peer holds other work or another answer under this id; look at its record.";
  return "The peer refuses this request as it stands; change what it complains about.";
}

function excerpt(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" ? "an empty body" : line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

/** `fetch` says little by itself; its cause says whether it was DNS, a refused connection or a reset. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== ""
    ? `${error.message} (${cause.message})`
    : error.message;
}
