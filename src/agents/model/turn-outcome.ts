import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { Usage } from "../../domain/budget/usage.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";
import { failed } from "../../domain/tool-batch/call-outcome.ts";
import type { Move, WantedCall } from "../../runtime/ports/carrier.ts";
import type { LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import type { ParsedJson } from "../agent-options.ts";
import { type ModelTurn, type TurnCall, type TurnPart, providerOptions } from "./model-turn.ts";
import { builtInProblem } from "./provider-tools.ts";
import { type OutputFormat, readJsonAnswer } from "./output-format.ts";

/** What is needed, beside the turn, to say what it means. */
export interface TurnReading {
  readonly model: string;
  readonly tools: readonly LanguageModelV3FunctionTool[];
  readonly format: OutputFormat;
  readonly maxOutputTokens: number | undefined;
  /** Assistant messages before this turn: names calls that the provider gave no usable id. */
  readonly turnNumber: number;
  readonly usage: Usage;
  parseOutput(value: Json): Promise<ParsedJson>;
}

/** What a turn that was read to its end means for the Run. */
export async function turnMove(turn: ModelTurn, reading: TurnReading): Promise<Move> {
  const { usage, model } = reading;
  const fail = (code: string, message: string, retryable: boolean): Move => ({
    kind: "fail",
    error: { code, message },
    retryable,
    retryAfterMs: null,
    usage,
  });
  const parts = turn.parts.filter(
    (part) =>
      part.kind === "call" || part.kind === "provider" || part.text !== "" || part.metadata !== undefined,
  );
  const text = parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("");
  const calls = parts.flatMap((part) => (part.kind === "call" ? [part.call] : []));

  if (turn.finish === null) {
    // Half a call is no call, and half an answer is no answer: all of it is dropped.
    return parts.length === 0
      ? fail("empty_turn", `${model} answered with nothing at all.`, true)
      : fail("stream_incomplete", `The answer of ${model} broke off before its end.`, true);
  }
  if (turn.finish === "content-filter") {
    return fail(
      "content_filtered",
      `The provider of ${model} withheld the answer under its content policy. Change the instructions or the input.`,
      false,
    );
  }
  if (turn.finish === "error") {
    return fail("provider_unavailable", `The provider of ${model} ended the answer with an error.`, true);
  }
  const read = readCalls(calls, reading);
  if (turn.finish === "length" && (calls.length === 0 || read.some((one) => one.malformed))) {
    const limit =
      reading.maxOutputTokens === undefined
        ? "the provider's default limit (maxOutputTokens is not set)"
        : `maxOutputTokens (${reading.maxOutputTokens})`;
    return fail(
      "output_truncated",
      `The answer of ${model} was cut at ${limit}. Raise maxOutputTokens, or have the agent answer in smaller pieces.`,
      false,
    );
  }
  if (read.length > 0) {
    return {
      kind: "calls",
      message: assistantMessage(parts, read),
      calls: read.map((one) => one.wanted),
      usage,
    };
  }
  if (text.trim() === "") return fail("empty_turn", `${model} answered with no text and no tool call.`, true);

  const message = assistantMessage(parts, []);
  if (reading.format.kind === "text") return { kind: "complete", output: text, message, usage };
  const answer = readJsonAnswer(text, reading.format);
  if (!answer.ok) {
    return fail(
      "output_not_json",
      `The answer of ${model} is not the JSON it was asked for: ${answer.message}`,
      true,
    );
  }
  const output = await reading.parseOutput(answer.value);
  return output.ok
    ? { kind: "complete", output: output.value, message, usage }
    : fail(
        "output_invalid",
        `The answer of ${model} does not fit the output schema: ${output.message}`,
        true,
      );
}

interface ReadCall {
  readonly source: TurnCall;
  readonly wanted: WantedCall;
  readonly malformed: boolean;
}

function readCalls(calls: readonly TurnCall[], reading: TurnReading): readonly ReadCall[] {
  const taken = new Set<string>();
  return calls.map((source, index) => {
    // Answers are matched by id, so an id that is missing or used twice is replaced; the same turn gives the same one.
    const usable = source.id !== "" && !taken.has(source.id);
    const providerCallId = usable ? source.id : `call_${reading.turnNumber}_${index}`;
    taken.add(providerCallId);
    const tool = reading.tools.find((one) => one.name === source.tool);
    const parsed = parseArguments(source.input);
    // Providers take only an object back as the arguments of a call.
    const input = parsed.ok ? parsed.value : { malformedArguments: source.input };
    const base = { tool: source.tool, input, providerCallId };
    if (tool === undefined) {
      const names = reading.tools.map((one) => one.name);
      const answer = failed(
        "unknown_tool",
        `There is no tool ${JSON.stringify(source.tool)}. ${names.length === 0 ? "No tools exist; answer directly." : `Tools: ${names.join(", ")}.`}`,
      );
      return { source, malformed: !parsed.ok, wanted: { ...base, answer } };
    }
    const problem = parsed.ok ? builtInProblem(source.tool, parsed.value) : parsed.message;
    if (problem === undefined) return { source, malformed: false, wanted: base };
    const answer = failed(
      "invalid_tool_input",
      `The arguments of ${source.tool} are not valid: ${problem}. Nothing was run. Call it again with one JSON object that fits: ${canonicalJson(tool.inputSchema as Json)}`,
    );
    return { source, malformed: !parsed.ok, wanted: { ...base, answer } };
  });
}

function parseArguments(
  text: string,
):
  | { readonly ok: true; readonly value: { readonly [key: string]: Json } }
  | { readonly ok: false; readonly message: string } {
  // A tool without parameters is often called with no arguments at all.
  if (text.trim() === "") return { ok: true, value: {} };
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { ok: true, value: value as { readonly [key: string]: Json } }
    : { ok: false, message: "they must be a JSON object" };
}

/** The turn as it goes back to the provider: parts in the provider's order, its own metadata kept. */
function assistantMessage(parts: readonly TurnPart[], calls: readonly ReadCall[]): HistoryMessage {
  const content = parts.flatMap((part): readonly Json[] => {
    switch (part.kind) {
      case "text":
        return part.text === "" ? [] : [{ type: "text", text: part.text, ...providerOptions(part.metadata) }];
      case "reasoning":
        // Providers that sign or number their reasoning want it back always, others at most with the calls it led to.
        return part.metadata === undefined && calls.length === 0
          ? []
          : [{ type: "reasoning", text: part.text, ...providerOptions(part.metadata) }];
      case "provider":
        return [part.part];
      case "call": {
        const read = calls.find((one) => one.source === part.call);
        return read === undefined
          ? []
          : [
              {
                type: "tool-call",
                toolCallId: read.wanted.providerCallId ?? part.call.id,
                toolName: part.call.tool,
                input: read.wanted.input,
                ...providerOptions(part.call.metadata),
              },
            ];
      }
      default:
        return part satisfies never;
    }
  });
  // Exactly what a store will give back, `undefined` members gone.
  return { role: "assistant", content: JSON.parse(canonicalJson(content)) as Json };
}
