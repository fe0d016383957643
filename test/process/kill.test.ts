import { expect, it } from "vitest";
import { killSoak } from "./kill-soak.ts";

/*
 * The short form of `npm run soak:kill`: a worker process is killed with SIGKILL at ten random moments of the release review.
 * Moments are not repeatable to the microsecond, so neither is a failure; its message has everything that was found.
 */
it("a main job that is killed ten times leaves what an unkilled one leaves (K6.1, L9, L10, L14)", async () => {
  const report = await killSoak({ kills: 10, seed: 20_260_812 });
  expect(report.problems).toEqual([]);
  expect(report.kills).toBe(10);
  expect(report.idempotentEffects).toBe(report.jobs);
  expect(report.historiesCompared + 2 * report.unknownCalls).toBeGreaterThanOrEqual(report.runs);
}, 180_000);
