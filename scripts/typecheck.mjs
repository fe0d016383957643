// Type-checks the repository: everything with Node's types, the published sources as they are built,
// and the pure folders without any platform types.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const projects = [
  "tsconfig.json",
  "tsconfig.build.json",
  "src/rules/tsconfig.json",
  "src/domain/tsconfig.json",
];
let failed = false;
for (const project of projects) {
  if (!existsSync(project)) {
    console.error(`${project} is missing.`);
    failed = true;
    continue;
  }
  const run = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", project, "--noEmit"], {
    stdio: "inherit",
  });
  if (run.status !== 0) {
    console.error(`${project} does not type-check.`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
