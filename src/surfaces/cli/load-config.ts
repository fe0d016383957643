import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ErrandError } from "../../domain/errand-error.ts";
import { type ErrandConfig, parseConfig } from "../library/define-config.ts";
import { CliError, failureOf } from "./cli-error.ts";
import { EXIT } from "./exit-code.ts";

/** A project's config as it was found. */
export interface Project {
  readonly file: string;
  /** Where the file stands; the paths in it are relative to this. */
  readonly folder: string;
  readonly config: ErrandConfig;
}

const NAMES = ["ts", "mts", "js", "mjs", "json"].map((extension) => `errand.config.${extension}`);

/** The nearest config at or above a folder. */
export function findConfig(from: string): string | null {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const found = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
    if (found !== undefined) return found;
    if (dirname(folder) === folder) return null;
  }
}

/**
 * Loads a config as it is, TypeScript included. Its `errand` imports get the very modules that this program runs on, so
 * there is one copy of them, wherever the config stands.
 */
export async function loadConfig(path: string): Promise<Project> {
  const file = resolve(path);
  if (!existsSync(file)) {
    throw new ErrandError(
      "INVALID_CONFIG",
      `There is no config ${file}.`,
      "Check --config, or write a config with `errand init`.",
    );
  }
  const { createJiti } = await import("jiti");
  const jiti = createJiti(import.meta.url, {
    virtualModules: await doors(),
    alias: { "errand/testing": fileURLToPath(new URL("../../testing/index.js", import.meta.url)) },
  });
  let value: unknown;
  try {
    value = await jiti.import(file, { default: true });
  } catch (error) {
    throw configFailure(file, error);
  }
  return { file, folder: dirname(file), config: parseConfig(value, `The default export of ${file}`) };
}

/** All doors but `errand/testing`, which holds no state and which this program itself has no use for. */
async function doors(): Promise<Record<string, unknown>> {
  const [library, sqlite, memory, model] = await Promise.all([
    import("../library/index.ts"),
    import("../../stores/sqlite/index.ts"),
    import("../../stores/memory/index.ts"),
    import("../../agents/model/index.ts"),
  ]);
  return {
    errand: library,
    "errand/sqlite": sqlite,
    "errand/memory": memory,
    "errand/model": model,
  };
}

function configFailure(file: string, cause: unknown): Error {
  if (ErrandError.is(cause)) {
    const { message } = failureOf(cause);
    const place = placeOf(cause, dirname(file)) || ` (loading ${file})`;
    return new ErrandError(cause.code, `${message.replace(/\.$/, "")}${place}.`, cause.fix, { cause });
  }
  const text = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
  const missing = /Cannot find (?:module|package) '([^'./][^']*)'/.exec(text ?? "")?.[1];
  return new CliError(
    "CONFIG_FAILED",
    EXIT.usage,
    `Loading ${file} failed: ${text}${placeOf(cause, dirname(file))}.`,
    missing === undefined
      ? "Correct that file, or one that it imports; then try again."
      : `Install the package where the config stands: npm install ${missing}`,
    cause,
  );
}

/** Where in the user's own files it went wrong, as far as the stack says. */
function placeOf(cause: unknown, folder: string): string {
  const stack = cause instanceof Error ? (cause.stack ?? "") : "";
  const line = stack
    .split("\n")
    .slice(1)
    .find((one) => one.includes(folder) && !one.includes("node_modules"));
  const place = /\(?(\/[^()]+:\d+:\d+)\)?$/.exec(line ?? "")?.[1];
  return place === undefined ? "" : ` (at ${place})`;
}
