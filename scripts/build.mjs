// Builds the package into dist/: compiles src/ with tsc and copies the .sql files beside the compiled sources.
// The new dist/ is made aside and moved into place, so a build that fails leaves the last good one as it was.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const staging = `dist.${process.pid}.tmp`;
process.on("exit", () => rmSync(staging, { recursive: true, force: true }));

const tsc = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", staging],
  { stdio: "inherit" },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

for (const entry of readdirSync("src", { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith(".sql")) continue;
  const from = join(entry.parentPath, entry.name);
  const to = join(staging, relative("src", from));
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}

const cli = join(staging, "surfaces/cli/main.js");
if (existsSync(cli)) chmodSync(cli, 0o755);

rmSync("dist", { recursive: true, force: true });
renameSync(staging, "dist");
