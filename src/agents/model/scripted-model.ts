import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3GenerateResult,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import type { Json } from "../../rules/json.ts";
import { type ScriptedFault, ScriptedProviderError } from "./scripted-error.ts";

/** A tool call that a scripted turn makes. */
export interface ScriptedCall {
  readonly tool: string;
  readonly input?: Json;
  /** The arguments as text, valid or not, instead of `input`. */
  readonly rawInput?: string;
  /** Default: derived from the turn's number and the call's place in it. */
  readonly id?: string;
}

/** What a scripted model says in one turn: its final text, or in detail. */
export type ScriptedTurn =
  | string
  | {
      readonly text?: string;
      readonly reasoning?: string;
      readonly calls?: readonly ScriptedCall[];
      /** Null: the provider reports none. */
      readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } | null;
      /** The request fails: an HTTP status, or any error such as a broken connection. */
      readonly error?: ScriptedFault | Error;
      /** `none` ends the stream without a finish event. Default: `tool-calls` if there are calls, else `stop`. */
      readonly finish?: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other" | "none";
      /** Into how many pieces a text or the arguments of a call are cut; default 4. */
      readonly chunks?: number;
      /** The connection breaks after this many stream events. */
      readonly breakAfter?: number;
      /** Wait before each stream event. */
      readonly delayMs?: number;
    };

/** What a script sees of the request that it answers. */
export interface ScriptedView {
  readonly prompt: LanguageModelV3Prompt;
  /** Turns that the model has taken in this prompt: 0 for the first. */
  readonly step: number;
  /** Names of the tools that the request offers. */
  readonly tools: readonly string[];
  /** Text of the last user message. */
  readonly userText: string;
  /** Answers to the calls of the last turn, in call order. */
  readonly toolResults: readonly ScriptedToolResult[];
}

export interface ScriptedToolResult {
  readonly tool: string;
  readonly callId: string;
  readonly ok: boolean;
  readonly value: Json;
}

export type ScriptedTurnFunction = (view: ScriptedView) => ScriptedTurn | Promise<ScriptedTurn>;
export type Script = readonly (ScriptedTurn | ScriptedTurnFunction)[] | ScriptedTurnFunction;

export interface ScriptedModelOptions {
  readonly modelId?: string;
  /** Reported by every turn that says nothing else; default 100 in, 20 out. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}

export interface ScriptedModel extends LanguageModelV3 {
  /** Requests made to this object, for tests; no turn depends on it. */
  readonly calls: number;
}

/**
 * A language model that follows a script, for tests and demos without a provider. It keeps no state between requests:
 * which turn comes next is read from the prompt, so after a crash the same history gets the same answer.
 * @param script turns in order, or a function from the request to its turn
 */
export function scriptedModel(script: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  let calls = 0;
  const usage = options.usage ?? { inputTokens: 100, outputTokens: 20 };
  const modelId = options.modelId ?? "script";

  async function take(request: LanguageModelV3CallOptions): Promise<readonly StreamStep[]> {
    calls += 1;
    request.abortSignal?.throwIfAborted();
    const view = viewOf(request);
    const entry = typeof script === "function" ? script : script[view.step];
    if (entry === undefined) {
      throw new ScriptedProviderError({
        status: 400,
        message: `The script of model "${modelId}" has no turn ${view.step}; it has ${script.length}.`,
      });
    }
    const turn = typeof entry === "function" ? await entry(view) : entry;
    const detailed = typeof turn === "string" ? { text: turn } : turn;
    if (detailed.error !== undefined) {
      throw detailed.error instanceof Error ? detailed.error : new ScriptedProviderError(detailed.error);
    }
    return streamSteps(detailed, view.step, usage);
  }

  return {
    specificationVersion: "v3",
    provider: "scripted",
    modelId,
    supportedUrls: {},
    get calls() {
      return calls;
    },
    async doStream(request) {
      return { stream: streamOf(await take(request), request.abortSignal) };
    },
    async doGenerate(request) {
      return collected(streamOf(await take(request), request.abortSignal));
    },
  };
}

/**
 * A turn that fails `times` times before it says `afterwards`. It counts, so one such turn belongs to one model and one Run.
 * @example scriptedModel([failTimes(2, { status: 429, retryAfter: 1 }, "done")])
 */
export function failTimes(
  times: number,
  error: ScriptedFault | Error,
  afterwards: ScriptedTurn | ScriptedTurnFunction,
): ScriptedTurnFunction {
  let failures = 0;
  return (view) => {
    if (failures < times) {
      failures += 1;
      return { error };
    }
    return typeof afterwards === "function" ? afterwards(view) : afterwards;
  };
}

type DetailedTurn = Exclude<ScriptedTurn, string>;
type StreamStep =
  | { readonly part: LanguageModelV3StreamPart; readonly delayMs: number }
  | { readonly breaks: true; readonly delayMs: number };

function streamSteps(
  turn: DetailedTurn,
  step: number,
  usage: { readonly inputTokens: number; readonly outputTokens: number },
): readonly StreamStep[] {
  const chunks = turn.chunks ?? 4;
  const parts: LanguageModelV3StreamPart[] = [{ type: "stream-start", warnings: [] }];
  for (const kind of ["reasoning", "text"] as const) {
    const text = turn[kind];
    if (text === undefined || text === "") continue;
    const id = `${kind}-${step}`;
    parts.push({ type: `${kind}-start`, id });
    for (const delta of pieces(text, chunks)) parts.push({ type: `${kind}-delta`, id, delta });
    parts.push({ type: `${kind}-end`, id });
  }
  for (const [index, call] of (turn.calls ?? []).entries()) {
    const id = call.id ?? `call_${step}_${index}`;
    const input = call.rawInput ?? JSON.stringify(call.input ?? {});
    parts.push({ type: "tool-input-start", id, toolName: call.tool });
    for (const delta of pieces(input, chunks)) parts.push({ type: "tool-input-delta", id, delta });
    parts.push(
      { type: "tool-input-end", id },
      { type: "tool-call", toolCallId: id, toolName: call.tool, input },
    );
  }
  const finish = turn.finish ?? ((turn.calls ?? []).length > 0 ? "tool-calls" : "stop");
  if (finish !== "none") {
    parts.push({
      type: "finish",
      finishReason: { unified: finish, raw: finish },
      usage: usageOf(turn.usage === undefined ? usage : turn.usage),
    });
  }
  const delayMs = turn.delayMs ?? 0;
  const steps: StreamStep[] = parts.map((part) => ({ part, delayMs }));
  return turn.breakAfter === undefined
    ? steps
    : [...steps.slice(0, turn.breakAfter), { breaks: true, delayMs }];
}

function usageOf(
  counts: { readonly inputTokens: number; readonly outputTokens: number } | null,
): LanguageModelV3Usage {
  return {
    inputTokens: {
      total: counts?.inputTokens,
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
    },
    outputTokens: { total: counts?.outputTokens, text: undefined, reasoning: undefined },
  };
}

/** Cuts by code points, so no piece ends inside a character. */
function pieces(text: string, count: number): readonly string[] {
  const points = Array.from(text);
  const size = Math.max(1, Math.ceil(points.length / Math.max(1, count)));
  const cut: string[] = [];
  for (let at = 0; at < points.length; at += size) cut.push(points.slice(at, at + size).join(""));
  return cut;
}

function streamOf(
  steps: readonly StreamStep[],
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV3StreamPart> {
  let at = 0;
  return new ReadableStream<LanguageModelV3StreamPart>(
    {
      async pull(controller) {
        const step = steps[at++];
        if (step === undefined) {
          controller.close();
          return;
        }
        try {
          await pause(step.delayMs, signal);
        } catch (error) {
          controller.error(error);
          return;
        }
        if ("part" in step) controller.enqueue(step.part);
        else controller.error(new TypeError("terminated"));
      },
    },
    { highWaterMark: 0 },
  );
}

async function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (delayMs <= 0) return;
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

async function collected(
  stream: ReadableStream<LanguageModelV3StreamPart>,
): Promise<LanguageModelV3GenerateResult> {
  const content: LanguageModelV3Content[] = [];
  let text = "";
  let reasoning = "";
  for await (const part of stream) {
    if (part.type === "text-delta") text += part.delta;
    else if (part.type === "reasoning-delta") reasoning += part.delta;
    else if (part.type === "tool-call") content.push(part);
    else if (part.type === "finish") {
      if (text !== "") content.unshift({ type: "text", text });
      if (reasoning !== "") content.unshift({ type: "reasoning", text: reasoning });
      return { content, finishReason: part.finishReason, usage: part.usage, warnings: [] };
    }
  }
  throw new TypeError("terminated");
}

function viewOf(request: LanguageModelV3CallOptions): ScriptedView {
  const { prompt } = request;
  const lastUser = prompt.findLast((message) => message.role === "user");
  const last = prompt.at(-1);
  return {
    prompt,
    step: prompt.filter((message) => message.role === "assistant").length,
    tools: (request.tools ?? []).map((tool) => tool.name),
    userText:
      lastUser?.role === "user"
        ? lastUser.content.map((part) => (part.type === "text" ? part.text : "")).join("")
        : "",
    toolResults:
      last?.role === "tool"
        ? last.content.flatMap((part) =>
            part.type === "tool-result"
              ? [
                  {
                    tool: part.toolName,
                    callId: part.toolCallId,
                    ok: part.output.type === "text" || part.output.type === "json",
                    value: ("value" in part.output ? part.output.value : null) as Json,
                  },
                ]
              : [],
          )
        : [],
  };
}
