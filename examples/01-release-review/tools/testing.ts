import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { ReleaseInputError } from "./release-input-error.ts";
import type { ReleaseFolders } from "./release-input.ts";

/** The folders that come with the example. */
export const SHIPPED: ReleaseFolders = {
  before: fileURLToPath(new URL("../before", import.meta.url)),
  after: fileURLToPath(new URL("../after", import.meta.url)),
};

/** An empty folder that is gone when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "release-review-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A copy of the shipped input that a test may change. */
export async function copyOfShipped(): Promise<ReleaseFolders> {
  const folder = await temporaryFolder();
  const copy = { before: join(folder, "before"), after: join(folder, "after") };
  await cp(SHIPPED.before, copy.before, { recursive: true });
  await cp(SHIPPED.after, copy.after, { recursive: true });
  return copy;
}

/** The input error that an action ends with. */
export async function inputErrorOf(action: () => unknown): Promise<ReleaseInputError> {
  try {
    await action();
  } catch (error) {
    if (error instanceof ReleaseInputError) return error;
    throw error;
  }
  throw new Error("expected a ReleaseInputError, and nothing was thrown");
}
