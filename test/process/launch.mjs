// Runs a TypeScript file in a process of its own: `node test/process/launch.mjs <file.ts> [arguments]`. The package's own
// name means the sources, as in the tests, so no build comes first.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";

const source = (path) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

const jiti = createJiti(import.meta.url, {
  alias: {
    "errand/sqlite": source("stores/sqlite/index.ts"),
    "errand/postgres": source("stores/postgres/index.ts"),
    "errand/memory": source("stores/memory/index.ts"),
    "errand/model": source("agents/model/index.ts"),
    errand: source("surfaces/library/index.ts"),
  },
});
const [file, ...args] = process.argv.slice(2);
const { main } = await jiti.import(resolve(file));
process.exitCode = await main(args);
