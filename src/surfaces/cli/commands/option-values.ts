import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import type { Json } from "../../../rules/json.ts";
import { usageError } from "../cli-error.ts";
import { parseDuration } from "../measure.ts";

/** Reads an option that is a whole number, `least` or more. */
export function wholeNumber(option: string, least = 1): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`Give ${option} a whole number of at least ${least}.`);
  };
}

export function duration(option: string): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms !== null) return ms;
    throw new InvalidArgumentError(`Give ${option} a time such as 500ms, 30s, 5m, 2h or 30d.`);
  };
}

/** JSON from the command line, with what a shell most often does to it explained. */
export function jsonText(text: string, where: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    const quoted = /^[\p{L}\p{N} .,!?_-]+$/u.test(text)
      ? `A text needs its own quotes inside the shell's: '${JSON.stringify(text)}'.`
      : "Put single quotes around it, so that the shell leaves the double ones alone.";
    throw usageError(`${where} is not JSON: ${(cause as Error).message}.`, quoted);
  }
}

export function jsonFile(path: string): Json {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw usageError(
      `${path} cannot be read: ${(cause as Error).message}.`,
      "Check the path given to --input-file.",
    );
  }
  return jsonText(text, path);
}

export async function jsonFromStdin(): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return jsonText(Buffer.concat(chunks).toString("utf8"), "The input on stdin");
}
