import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { Json } from "../../rules/json.ts";
import type { LiveDelta } from "../../runtime/ports/live-bus.ts";

/** A tool call as the provider sent it; `input` is its text, valid or not. */
export interface TurnCall {
  readonly id: string;
  readonly tool: string;
  readonly input: string;
  readonly metadata: Json | undefined;
}

/** A part of a turn, in the order in which the provider began it. */
export type TurnPart =
  | { readonly kind: "text"; readonly text: string; readonly metadata: Json | undefined }
  | { readonly kind: "reasoning"; readonly text: string; readonly metadata: Json | undefined }
  | { readonly kind: "call"; readonly call: TurnCall }
  /** A call that the provider made and answered by itself; it goes back to the provider as it is. */
  | { readonly kind: "provider"; readonly part: Json };

/** Everything one model call said. */
export interface ModelTurn {
  readonly parts: readonly TurnPart[];
  /** Null if the stream ended without a finish event or without a reason in it: its end is unknown. */
  readonly finish: string | null;
  /** As the provider reported it; undefined if it did not. */
  readonly usage: unknown;
  /** The first error inside the stream. */
  readonly error: { readonly value: unknown } | null;
  readonly warnings: readonly string[];
}

/** Reads a provider's stream to its end. Rejects if the stream breaks, and with the signal's reason on abort. */
export async function readTurn(
  stream: ReadableStream<LanguageModelV3StreamPart>,
  emit: (delta: LiveDelta) => void,
  signal: AbortSignal,
): Promise<ModelTurn> {
  const reader = stream.getReader();
  const collector = new TurnCollector(emit);
  // A provider that ignores the signal must not keep a canceled Run.
  const onAbort = (): void => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return collector.turn();
      collector.take(value);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    reader.releaseLock();
  }
}

interface OpenText {
  readonly kind: "text" | "reasoning";
  text: string;
  metadata: Json | undefined;
}

interface BlockEvent {
  readonly id: string;
  readonly providerMetadata?: unknown;
}

class TurnCollector {
  private readonly parts: (TurnPart | OpenText)[] = [];
  private readonly open = new Map<string, OpenText>();
  private readonly toolNames = new Map<string, string>();
  private readonly warnings: string[] = [];
  private finish: string | null = null;
  private usage: unknown = undefined;
  private error: { readonly value: unknown } | null = null;
  private readonly emit: (delta: LiveDelta) => void;

  constructor(emit: (delta: LiveDelta) => void) {
    this.emit = emit;
  }

  turn(): ModelTurn {
    return {
      parts: this.parts,
      finish: this.finish,
      usage: this.usage,
      error: this.error,
      warnings: this.warnings,
    };
  }

  take(part: LanguageModelV3StreamPart): void {
    switch (part.type) {
      case "stream-start":
        for (const warning of part.warnings) this.warnings.push(warningText(warning));
        return;
      case "text-start":
        this.begin("text", part);
        return;
      case "text-delta":
        this.extend("text", part);
        return;
      case "text-end":
        this.end("text", part);
        return;
      case "reasoning-start":
        this.begin("reasoning", part);
        return;
      case "reasoning-delta":
        this.extend("reasoning", part);
        return;
      case "reasoning-end":
        this.end("reasoning", part);
        return;
      case "tool-input-start":
        this.toolNames.set(part.id, part.toolName);
        return;
      case "tool-input-delta":
        if (part.delta !== "")
          this.emit({ kind: "tool_input", tool: this.toolNames.get(part.id) ?? "", text: part.delta });
        return;
      case "tool-call":
        this.takeCall(part);
        return;
      case "tool-result":
        this.parts.push({
          kind: "provider",
          part: {
            type: "tool-result",
            toolCallId: part.toolCallId,
            toolName: part.toolName,
            output: { type: part.isError === true ? "error-json" : "json", value: part.result as Json },
            ...providerOptions(part.providerMetadata as Json | undefined),
          },
        });
        return;
      case "finish":
        this.finish = finishReason(part.finishReason);
        this.usage = part.usage;
        return;
      case "error":
        this.error ??= { value: part.error };
        return;
      case "tool-input-end":
      case "tool-approval-request":
      case "response-metadata":
      case "file":
      case "source":
      case "raw":
        return;
      default:
        // A kind of part that a newer provider adds carries nothing that the history needs.
        part satisfies never;
    }
  }

  private begin(kind: OpenText["kind"], event: BlockEvent): OpenText {
    const block: OpenText = { kind, text: "", metadata: event.providerMetadata as Json | undefined };
    this.open.set(`${kind} ${event.id}`, block);
    this.parts.push(block);
    return block;
  }

  private extend(kind: OpenText["kind"], event: BlockEvent & { readonly delta: string }): void {
    const block = this.open.get(`${kind} ${event.id}`) ?? this.begin(kind, event);
    block.text += event.delta;
    // Signatures and item ids come with whichever event the provider likes; the last one stands.
    block.metadata = (event.providerMetadata as Json | undefined) ?? block.metadata;
    if (event.delta !== "") this.emit({ kind, text: event.delta });
  }

  private end(kind: OpenText["kind"], event: BlockEvent): void {
    const key = `${kind} ${event.id}`;
    const block = this.open.get(key);
    if (block !== undefined) block.metadata = (event.providerMetadata as Json | undefined) ?? block.metadata;
    // Some providers use one id for every block of a turn.
    this.open.delete(key);
  }

  private takeCall(part: Extract<LanguageModelV3StreamPart, { type: "tool-call" }>): void {
    const metadata = part.providerMetadata as Json | undefined;
    if (part.providerExecuted === true) {
      this.parts.push({
        kind: "provider",
        part: {
          type: "tool-call",
          toolCallId: part.toolCallId,
          toolName: part.toolName,
          input: looseJson(part.input),
          providerExecuted: true,
          ...providerOptions(metadata),
        },
      });
      return;
    }
    this.parts.push({
      kind: "call",
      call: { id: part.toolCallId, tool: part.toolName, input: part.input, metadata },
    });
  }
}

/** What a provider said about a part goes back to it as options of the same part. */
export function providerOptions(metadata: Json | undefined): { readonly [key: string]: Json } {
  return metadata === undefined || metadata === null ? {} : { providerOptions: metadata };
}

/** The unified reason; null where the provider gave no reason of its own, which means that the stream was cut. */
function finishReason(reason: unknown): string | null {
  if (typeof reason === "string") return reason;
  const { unified, raw } = reason as { unified?: string; raw?: string };
  return unified === undefined || (unified === "other" && (raw === undefined || raw === "")) ? null : unified;
}

function warningText(warning: {
  readonly type: string;
  readonly feature?: string;
  readonly details?: string | undefined;
  readonly message?: string;
}): string {
  return warning.message ?? `${warning.type}: ${warning.feature ?? ""} ${warning.details ?? ""}`.trim();
}

function looseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
