import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import { type ToolBatch, callAnswer } from "../tool-batch/tool-batch.ts";

/** One provider-visible message. Its canonical JSON is what is chained and what may never change (L9). */
export interface HistoryMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: Json;
}

/** Digest of an empty history. */
export const EMPTY_HISTORY_DIGEST = "0".repeat(64);

/** Extends the chain by one message: a committed prefix can be named by its digest alone. */
export function chainDigest(previous: string, message: HistoryMessage): string {
  return sha256Hex(`${previous}${canonicalJson({ role: message.role, content: message.content })}`);
}

/** The tool message that a finalized batch adds: exactly one answer a call, in call order (L9). */
export function toolMessage(batch: ToolBatch): HistoryMessage {
  return {
    role: "tool",
    content: batch.calls.map((call, index) => {
      const answer = callAnswer(call);
      return {
        type: "tool-result",
        toolCallId: call.request.providerCallId ?? `call_${batch.step}_${index}`,
        toolName: call.request.tool,
        output:
          answer === undefined
            ? { type: "error-text", value: "no answer" }
            : answer.ok
              ? typeof answer.value === "string"
                ? { type: "text", value: answer.value }
                : { type: "json", value: answer.value }
              : {
                  type: "error-json",
                  value: {
                    error: answer.error.code,
                    message: answer.error.message,
                    ...(answer.error.details === undefined ? {} : { details: answer.error.details }),
                  },
                },
      };
    }),
  };
}
