// Runs the store and runtime suites on Node 24, where node:sqlite carries the SQLite store. The Node binary comes
// from npm into a temporary folder; a Node 24 or newer that already runs this script is used as it is.
// Arguments replace the suites: `npm run test:node24 -- src/domain`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "24.22.3";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), "errand-node24-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function run(command, args) {
  const done = spawnSync(command, args, { stdio: "inherit" });
  if (done.error) console.error(`${command} could not be started: ${done.error.message}`);
  if (done.status !== 0) process.exit(done.status ?? 1);
}

function node24() {
  if (Number(process.versions.node.split(".")[0]) >= 24) return process.execPath;
  const platform = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${platform}-${process.arch}`;
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", folder, `${name}@${VERSION}`]);
  return join(folder, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node");
}

const suites = process.argv.slice(2);
const node = node24();
run(node, ["--version"]);
run(node, [
  "node_modules/vitest/vitest.mjs",
  "run",
  ...(suites.length > 0 ? suites : ["src/stores/", "src/runtime/"]),
]);
