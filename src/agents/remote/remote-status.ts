import type { Usage } from "../../domain/budget/usage.ts";
import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { RemoteStatus } from "../../runtime/ports/remote-agent.ts";

const UNITS = [
  "inputTokens",
  "outputTokens",
  "modelCalls",
  "unreportedModelCalls",
  "toolCalls",
  "costMicros",
] as const satisfies readonly (keyof Usage)[];

/** Reads what a peer says of its work; null if it says nothing that can be understood. */
export function readRemoteStatus(json: Json): RemoteStatus | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return null;
  const said = json as { readonly [key: string]: Json | undefined };
  switch (said["kind"]) {
    case "working":
      return { kind: "working", detail: text(said["detail"]) ?? "the peer works" };
    case "input_required": {
      const questionId = text(said["questionId"]);
      const prompt = text(said["prompt"]);
      const { schema = true } = said;
      if (questionId === null || prompt === null || !isSchema(schema)) return null;
      return { kind: "input_required", questionId, prompt, schema };
    }
    case "completed": {
      const { output } = said;
      return output === undefined ? null : { kind: "completed", output, usage: readUsage(said["usage"]) };
    }
    case "failed": {
      const error = said["error"] as { readonly [key: string]: Json | undefined } | null | undefined;
      const code = text(error?.["code"]);
      const message = text(error?.["message"]);
      if (code === null || message === null) return null;
      const details = error?.["details"];
      return {
        kind: "failed",
        error: details === undefined ? { code, message } : { code, message, details },
        usage: readUsage(said["usage"]),
      };
    }
    case "canceled":
      return { kind: "canceled", reason: text(said["reason"]) ?? "the peer gave no reason" };
    case "unknown":
      return { kind: "unknown" };
    default:
      return null;
  }
}

/** Null where a peer reports nothing or nonsense: unknown is not zero. */
function readUsage(json: Json | undefined): Usage | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return null;
  const said = json as { readonly [key: string]: Json | undefined };
  const usage = Object.fromEntries(UNITS.map((unit) => [unit, said[unit] ?? 0]));
  const sound = Object.values(usage).every((count) => Number.isSafeInteger(count) && (count as number) >= 0);
  return sound ? (usage as unknown as Usage) : null;
}

function isSchema(json: Json): json is JsonSchema & Json {
  return typeof json === "boolean" || (typeof json === "object" && json !== null && !Array.isArray(json));
}

function text(json: Json | undefined): string | null {
  return typeof json === "string" && json !== "" ? json : null;
}
