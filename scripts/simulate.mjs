// Plays seeds of the simulation in test/simulation, from the sources: `npm run simulate -- --help`.
import { createJiti } from "jiti";

const { main } = await createJiti(import.meta.url).import("../test/simulation/run.ts");
process.exitCode = await main(process.argv.slice(2));
