import { readFile, readdir } from "node:fs/promises";
import { type ReleaseInputError, inputError, reasonOf } from "./release-input-error.ts";

/** Reads a file of the release. @throws ReleaseInputError with `fix` when it cannot be read. */
export async function readInputFile(file: string, fix: string, signal?: AbortSignal): Promise<Buffer> {
  try {
    return await readFile(file, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw fileError(file, error, fix);
  }
}

/** The file names in a folder, in code unit order, which is the same on every machine. @throws ReleaseInputError */
export async function listInputFolder(folder: string, fix: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).toSorted();
  } catch (error) {
    throw fileError(folder, error, fix);
  }
}

function fileError(file: string, error: unknown, fix: string): ReleaseInputError {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  return inputError(file, isMissing ? "does not exist." : `cannot be read: ${reasonOf(error)}.`, fix, error);
}
