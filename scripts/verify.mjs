// Everything that CI does after `npm ci`, in its order. Every stage runs even when an earlier one failed, so one run
// tells all; the tests come last, and their closing line is the last line printed.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const stages = [
  "format:check",
  "lint",
  "typecheck",
  "layers",
  "deadcode",
  "docs:check",
  "package",
  "test:node24",
];

function passes(stage) {
  console.log(`\n== npm run ${stage}`);
  return spawnSync("npm", ["run", "--silent", stage], { stdio: "inherit" }).status === 0;
}

const failed = stages.filter((stage) => !passes(stage));
console.log(
  failed.length > 0
    ? `\nFailed before the tests: ${failed.join(", ")}`
    : "\nAll checks before the tests passed.",
);
if (!passes("test")) failed.push("test");
process.exit(failed.length > 0 ? 1 : 0);
