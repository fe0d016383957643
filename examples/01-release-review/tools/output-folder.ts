import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Writes a result so that a reader sees the old file or the new one, never half of one. Parallel writers of the same result do no harm. */
export async function writeResult(folder: string, name: string, content: string | Uint8Array): Promise<void> {
  await withScratchFolder(folder, async (scratch) => {
    const whole = join(scratch, name);
    await writeFile(whole, content);
    await rename(whole, join(folder, name));
  });
}

/**
 * Gives the action a private folder inside `folder` and removes it afterwards, whatever happens.
 * What a killed process left there is removed the next time.
 */
export async function withScratchFolder<T>(
  folder: string,
  action: (scratch: string) => Promise<T>,
): Promise<T> {
  await mkdir(folder, { recursive: true });
  await removeLeftovers(folder);
  const scratch = await mkdtemp(join(folder, `.scratch-${process.pid}-`));
  try {
    return await action(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const owner = Number(/^\.scratch-(\d+)-/.exec(name)?.[1] ?? Number.NaN);
    if (!Number.isNaN(owner) && !isAlive(owner))
      await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process is there and belongs to someone else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
