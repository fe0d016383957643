// `npm run demo`: reviews the shipped release, or yours. Builds Errand first if need be; needs no key and no server.
import { createJiti } from "jiti";
import { ensureBuilt } from "../../scripts/ensure-built.mjs";

ensureBuilt();

const dist = (path) => import(new URL(`../../dist/${path}`, import.meta.url).href);
const [library, sqlite, model, follow, live, style] = await Promise.all([
  dist("surfaces/library/index.js"),
  dist("stores/sqlite/index.js"),
  dist("agents/model/index.js"),
  dist("surfaces/cli/follow-tree.js"),
  dist("surfaces/cli/live-tree.js"),
  dist("surfaces/cli/style.js"),
]);
const jiti = createJiti(import.meta.url, {
  virtualModules: { errand: library, "errand/sqlite": sqlite, "errand/model": model },
});
const { demo } = await jiti.import("./demo.ts");
process.exitCode = await demo(process.argv.slice(2), { ...follow, ...live, ...style });
