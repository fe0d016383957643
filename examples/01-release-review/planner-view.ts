import type { Json } from "errand";
import type { ScriptedModel, ScriptedTurn, ScriptedView } from "errand/model";
import { scriptedModel } from "errand/model";
import type { z } from "zod";

/** How the planner's turns are shown: milliseconds between the pieces in which a turn arrives. 0 is as fast as it goes. */
export interface Pace {
  readonly paceMs: number;
}

/** What a planner reads of its conversation: the task it was given and what its calls have answered so far. */
export interface Conversation {
  /** The task's input, checked. */
  task<Schema extends z.ZodType>(schema: Schema): z.output<Schema>;
  /** The answer of the latest call of a tool; null if there is none yet. */
  answer(tool: string, index?: number): Answer | null;
}

export type Answer =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly reason: string };

/** What a planner decides to do next; `say` is shown to whoever watches. */
export type Plan =
  | { readonly say: string; readonly calls: readonly { readonly tool: string; readonly input: Json }[] }
  | { readonly result: Json };

/**
 * A stand-in for a language model where no provider is at hand: it decides what to call next, and reads everything else out of
 * the answers in its prompt, as a model does. It keeps nothing between requests.
 */
export function planner(
  modelId: string,
  { paceMs }: Pace,
  plan: (talk: Conversation) => Plan,
): ScriptedModel {
  return scriptedModel(
    (view): ScriptedTurn => {
      const next = plan(conversationOf(view));
      const usage = { inputTokens: roughTokens(view.prompt), outputTokens: roughTokens(next) };
      return "result" in next
        ? { text: JSON.stringify(next.result), delayMs: paceMs, usage }
        : { text: next.say, calls: next.calls, chunks: 8, delayMs: paceMs, usage };
    },
    { modelId },
  );
}

/** What a model would be billed for, at four characters a token. */
function roughTokens(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4);
}

function conversationOf(view: ScriptedView): Conversation {
  return {
    task: (schema) => schema.parse(JSON.parse(taskText(view))) as never,
    answer(tool, index = 0) {
      const message = view.prompt.findLast(
        ({ role, content }) =>
          role === "tool" &&
          typeof content !== "string" &&
          content.some((part) => part.type === "tool-result" && part.toolName === tool),
      );
      if (message?.role !== "tool") return null;
      const part = message.content.filter((one) => one.type === "tool-result" && one.toolName === tool)[
        index
      ];
      return part?.type === "tool-result" ? answerOf(part.output) : null;
    },
  };
}

/** A root is given its input as it is, a child its goal before it. */
function taskText(view: ScriptedView): string {
  const first = view.prompt.find(({ role }) => role === "user");
  const text =
    first?.role === "user"
      ? first.content.map((part) => (part.type === "text" ? part.text : "")).join("")
      : "";
  return text.slice(text.indexOf("{", Math.max(0, text.indexOf("Input:\n"))));
}

function answerOf(output: { readonly type: string; readonly value?: unknown }): Answer {
  if (output.type === "json" || output.type === "text") return { ok: true, value: output.value as Json };
  const { message } = (output.value ?? {}) as { readonly message?: string };
  return { ok: false, reason: message ?? JSON.stringify(output.value ?? "no answer") };
}
