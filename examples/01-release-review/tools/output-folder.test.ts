import { spawnSync } from "node:child_process";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { withScratchFolder, writeResult } from "./output-folder.ts";
import { temporaryFolder } from "./testing.ts";

it("leaves one whole file however many write it at once", async () => {
  const folder = join(await temporaryFolder(), "new", "folder");
  await Promise.all(Array.from({ length: 20 }, () => writeResult(folder, "result.json", "{}")));
  expect(await readdir(folder)).toEqual(["result.json"]);
  expect(await readFile(join(folder, "result.json"), "utf8")).toBe("{}");
});

it("removes the scratch folder when the work fails", async () => {
  const folder = await temporaryFolder();
  const work = withScratchFolder(folder, async (scratch) => {
    await writeFile(join(scratch, "half"), "");
    throw new Error("out of paper");
  });
  await expect(work).rejects.toThrow("out of paper");
  expect(await readdir(folder)).toEqual([]);
});

it("removes what a process that is gone left behind, and nothing of a living one", async () => {
  const folder = await temporaryFolder();
  const { pid: gone } = spawnSync(process.execPath, ["--version"]);
  const [dead, alive] = [`.scratch-${gone}-abc`, `.scratch-${process.pid}-abc`];
  await Promise.all([dead, alive].map((name) => mkdir(join(folder, name))));
  await withScratchFolder(folder, () => Promise.resolve());
  expect(await readdir(folder)).toEqual([alive]);
});
