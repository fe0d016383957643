import { defineConfig } from "errand";
import { reviewAgents } from "./agents.ts";
import { chooseModel } from "./model-choice.ts";

// For the `errand` command in this folder. ERRAND_MODEL or a provider's key chooses who plans, as in the demo.
const { model } = await chooseModel(process.env["ERRAND_MODEL"], process.env);

export default defineConfig({
  agents: [reviewAgents({ model })],
  // Short, so that a killed process is taken over while you watch.
  worker: { leaseMs: 3_000, sweepMs: 500 },
});
