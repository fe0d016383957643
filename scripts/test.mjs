// Runs the tests and closes with one line that programs can read: `N passed, N failed`, with `, N skipped` where
// tests were skipped. Arguments go to vitest: `npm test -- src/domain`. A run that executes no test has failed.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const folder = mkdtempSync(join(tmpdir(), "errand-test-"));
const report = join(folder, "report.json");
const vitest = spawnSync(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    ...process.argv.slice(2),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
  ],
  { stdio: "inherit" },
);

const count = { passed: 0, failed: 0, skipped: 0 };
try {
  for (const file of JSON.parse(readFileSync(report, "utf8")).testResults) {
    let failedTests = 0;
    for (const test of file.assertionResults) {
      if (test.status === "passed") count.passed++;
      else if (test.status === "failed") failedTests++;
      else count.skipped++;
    }
    // A file that could not be loaded, or whose hooks failed, has failed although no test of it did.
    count.failed += file.status === "failed" ? Math.max(failedTests, 1) : failedTests;
  }
} catch (error) {
  console.error(`The test runner left no readable report: ${error.message}`);
  count.failed++;
}
rmSync(folder, { recursive: true, force: true });

const executed = count.passed + count.failed;
if (executed === 0) console.error("No test was executed, so nothing was shown.");
if (vitest.status !== 0 && count.failed === 0 && executed > 0) {
  console.error(
    `Every test passed, yet the runner ended with ${vitest.status ?? vitest.signal}: see above. Counted as one failure.`,
  );
  count.failed = 1;
}

const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
console.log(`${count.passed} passed, ${count.failed} failed${skipped}`);
process.exitCode = count.failed > 0 || executed === 0 || vitest.status !== 0 ? 1 : 0;
