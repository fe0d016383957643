import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { HistoryMessage } from "../../domain/thread/history.ts";

/**
 * The prompt for a provider: the instructions, then the history as it is stored. The stored content already has the
 * shape of the provider's parts, so the same history always gives the same bytes and a provider's prompt cache holds.
 */
export function providerPrompt(
  instructions: string,
  history: readonly HistoryMessage[],
): LanguageModelV3Prompt {
  return [{ role: "system", content: instructions }, ...history.map(providerMessage)];
}

function providerMessage(message: HistoryMessage): LanguageModelV3Message {
  switch (message.role) {
    case "system":
      return { role: "system", content: textOf(message.content) };
    case "user":
    case "assistant":
    case "tool":
      // Written by this adapter or by `toolMessage`, in these very shapes.
      return { role: message.role, content: parts(message.content) } as unknown as LanguageModelV3Message;
    default:
      return message.role satisfies never;
  }
}

function parts(content: Json): readonly Json[] {
  return Array.isArray(content) ? content : [{ type: "text", text: textOf(content) }];
}

function textOf(content: Json): string {
  return typeof content === "string" ? content : canonicalJson(content);
}
