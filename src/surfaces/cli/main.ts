#!/usr/bin/env node
import { EXIT } from "./exit-code.ts";
import { main } from "./program.ts";

// Whoever reads our output may stop reading; that is no error of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT.done);
    throw error;
  });
}

const exitCode = await main(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
});
// An agent's code may hold the process open; what was written goes out first.
process.stdout.write("", () => process.stderr.write("", () => process.exit(exitCode)));
