import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { type JsonSchema, schemaProblems } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import type { RosterEntry } from "../../runtime/ports/agent.ts";
import type { CarrierSession, Move, MoveContext } from "../../runtime/ports/carrier.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import type { ParsedJson } from "../agent-options.ts";
import { type ModelTurn, readTurn } from "./model-turn.ts";
import { outputFormat, outputInstructions } from "./output-format.ts";
import { type ProviderFailure, providerFailure } from "./provider-failure.ts";
import { providerPrompt } from "./provider-prompt.ts";
import { providerTools } from "./provider-tools.ts";
import { turnMove } from "./turn-outcome.ts";
import { type ModelPrice, reportedUsage } from "./usage-report.ts";

/** An agent's own output schema, as the model has to write it, as it is published, and as it checks and converts. */
export interface ModelOutput {
  readonly written: JsonSchema;
  readonly read: JsonSchema;
  parse(value: Json): Promise<ParsedJson>;
}

/** What a session needs of its agent. */
export interface ModelSettings {
  readonly model: LanguageModelV3;
  readonly instructions: string;
  readonly output: ModelOutput;
  readonly tools: readonly Tool[];
  readonly roster: readonly RosterEntry[];
  readonly mayAsk: boolean;
  readonly price: ModelPrice | undefined;
  readonly providerOptions: SharedV3ProviderOptions | undefined;
  readonly temperature: number | undefined;
  readonly maxOutputTokens: number | undefined;
}

/*
 * A model at work on one Run. It holds no state of the Run: each move is made from the committed history alone.
 *
 * The model is called directly (`doStream`) and not through `streamText`. That function owns a loop of steps, runs tools,
 * retries, and repairs what it cannot parse; here each of these belongs to the runtime, and a retry that is hidden inside
 * a step would be an attempt that no one sees. Directly, one move is one request, and nothing runs that is not committed.
 */
export class ModelSession implements CarrierSession {
  private readonly settings: ModelSettings;
  private readonly tools: ReturnType<typeof providerTools>;
  private readonly modelName: string;
  private readonly warned = new Set<string>();

  constructor(settings: ModelSettings) {
    this.settings = settings;
    this.tools = providerTools(settings.tools, settings.roster, settings.mayAsk);
    this.modelName = `${settings.model.provider}/${settings.model.modelId}`;
  }

  prompt(context: MoveContext): readonly HistoryMessage[] {
    const { input } = context;
    const goal = context.header.origin?.contract.goal;
    const given = typeof input === "string" ? input : canonicalJson(input);
    const text = goal === undefined || goal === given ? given : `Goal: ${goal}\n\nInput:\n${given}`;
    return [{ role: "user", content: [{ type: "text", text }] }];
  }

  async next(context: MoveContext, signal: AbortSignal): Promise<Move> {
    signal.throwIfAborted();
    let stream: ReadableStream<LanguageModelV3StreamPart>;
    try {
      stream = await this.start(this.request(context, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      const failure = providerFailure(error, this.modelName, context.now, "start");
      return failMove(failure, failure.refused ? null : this.usage(undefined));
    }
    let turn: ModelTurn;
    try {
      turn = await readTurn(stream, (delta) => context.emit(delta), signal);
    } catch (error) {
      signal.throwIfAborted();
      return failMove(providerFailure(error, this.modelName, context.now, "stream"), this.usage(undefined));
    }
    for (const warning of turn.warnings) this.warn(warning, context);
    if (turn.error !== null && !isMissingFinish(turn.error.value)) {
      const failure = providerFailure(turn.error.value, this.modelName, context.now, "stream");
      return failMove(failure, this.usage(turn.usage));
    }
    return turnMove(turn.error === null ? turn : { ...turn, finish: null }, {
      model: this.modelName,
      tools: this.tools,
      format: outputFormat(this.answerSchema(context)),
      maxOutputTokens: this.settings.maxOutputTokens,
      turnNumber: context.history.filter((message) => message.role === "assistant").length,
      usage: this.usage(turn.usage),
      parseOutput: (value) => this.parseOutput(value, context),
    });
  }

  dispose(): void {
    this.warned.clear();
  }

  private request(context: MoveContext, signal: AbortSignal): LanguageModelV3CallOptions {
    const { instructions, providerOptions, temperature, maxOutputTokens } = this.settings;
    const format = outputFormat(this.answerSchema(context));
    return {
      prompt: providerPrompt(instructions + outputInstructions(format), context.history),
      abortSignal: signal,
      ...(this.tools.length === 0 ? {} : { tools: [...this.tools], toolChoice: { type: "auto" } }),
      ...(format.kind === "text"
        ? {}
        : {
            responseFormat: {
              type: "json",
              schema: format.schema as Extract<
                LanguageModelV3CallOptions["responseFormat"],
                { type: "json" }
              >["schema"],
              name: "answer",
            },
          }),
      ...(providerOptions === undefined ? {} : { providerOptions }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    };
  }

  /** Sends the request; does not outlast the signal, also where a provider ignores it. */
  private async start(
    request: LanguageModelV3CallOptions,
    signal: AbortSignal,
  ): Promise<ReadableStream<LanguageModelV3StreamPart>> {
    const started = Promise.resolve(this.settings.model.doStream(request));
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_resolve, reject) => {
      onAbort = () => {
        reject(signal.reason as Error);
        // An answer that still comes is let go.
        started.then(({ stream }) => stream.cancel(signal.reason)).catch(() => undefined);
      };
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return (await Promise.race([started, aborted])).stream;
    } finally {
      if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    }
  }

  /** What the model is asked to write: the agent's own form of its output schema, or what a contract demands instead. */
  private answerSchema(context: MoveContext): JsonSchema {
    return this.isOwnOutput(context) ? this.settings.output.written : context.header.outputSchema;
  }

  private async parseOutput(value: Json, context: MoveContext): Promise<ParsedJson> {
    if (this.isOwnOutput(context)) return this.settings.output.parse(value);
    const problems = schemaProblems(context.header.outputSchema, value);
    if (problems.length === 0) return { ok: true, value };
    const lines = problems.map((problem) => `${problem.pointer || "/"}: ${problem.message}`);
    return { ok: false, message: lines.join("; ") };
  }

  private isOwnOutput(context: MoveContext): boolean {
    const { outputSchema } = context.header;
    const own = this.settings.output.read;
    return outputSchema === own || canonicalJson(outputSchema) === canonicalJson(own);
  }

  private usage(reported: unknown): Usage {
    return reportedUsage(reported, this.settings.price);
  }

  private warn(warning: string, context: MoveContext): void {
    if (this.warned.has(warning)) return;
    this.warned.add(warning);
    context.warn(`${this.modelName}: ${warning}`);
  }
}

/** Some provider packages report a stream that ended without a finish reason as an error inside it. */
function isMissingFinish(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === "AI_InvalidResponseDataError" &&
    error.message.includes("without a finish reason")
  );
}

function failMove(failure: ProviderFailure, usage: Usage | null): Move {
  const { error, retryable, retryAfterMs } = failure;
  return { kind: "fail", error, retryable, retryAfterMs, usage };
}
