// Builds dist/ if there is none or a source is newer, so that a command works on a fresh clone. A build takes some seconds.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Ends the process if the sources do not compile. */
export function ensureBuilt() {
  if (isFresh()) return;
  process.stderr.write("Building Errand ...\n");
  const build = spawnSync(process.execPath, [join(root, "scripts/build.mjs")], {
    stdio: ["ignore", 2, 2],
  });
  if (build.status !== 0) process.exit(build.status ?? 1);
}

function isFresh() {
  const built = join(root, "dist/surfaces/cli/main.js");
  if (!existsSync(built)) return false;
  const builtAt = statSync(built).mtimeMs;
  return readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }).every(
    (entry) =>
      !entry.isFile() ||
      entry.name.endsWith(".test.ts") ||
      statSync(join(entry.parentPath, entry.name)).mtimeMs <= builtAt,
  );
}
