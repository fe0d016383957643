import { sha256Hex } from "../../rules/sha256.ts";

/** What stands where content was erased: the digest of the text that stood there, and nothing else (L2). */
export function erasureMark(text: string): string {
  return isErased(text) ? text : `{"erased":"${sha256Hex(text)}"}`;
}

/** No body, envelope, ticket or summary that the runtime writes looks like this. */
export function isErased(text: string): boolean {
  return /^\{"erased":"[0-9a-f]{64}"\}$/.test(text);
}
