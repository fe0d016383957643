import { expect, test } from "vitest";
import { functionAgent } from "../../agents/function/function-agent.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { createErrand } from "../../surfaces/library/create-errand.ts";
import { LoadedRun } from "../run/loaded-run.ts";
import { RunDriver } from "./run-driver.ts";

test("L23 a cancel that is heard before a warm run is taken up is read at once, not at the next heartbeat", async () => {
  const patient = functionAgent({
    name: "patient",
    version: "1",
    inputSchema: true,
    outputSchema: true,
    run: ({ signal }) =>
      new Promise<null>((resolve) => signal.addEventListener("abort", () => resolve(null))),
  });
  await using errand = await createErrand({
    store: createMemoryStore(),
    agents: [patient],
    worker: { pollMs: 3_600_000, leaseMs: 3_600_000 },
    settings: { cancelGraceMs: 10 },
  });
  const worker = errand.worker!;
  const { store, tenant } = errand;
  // The worker itself claims nothing: the test claims in its name.
  const claimForTest = store.claim.bind(store);
  store.claim = async () => [];
  const run = await errand.start(patient, null);
  const { incarnation, carries } = worker;
  const [claim] = await claimForTest(tenant, { incarnation, carries, limit: 1 });
  const rows = await store.readLog(tenant, { runId: run.runId }, 0, 10);
  const loaded = LoadedRun.fold(run.runId, rows)!;
  worker.keepWarm(run.runId, { run: loaded, session: null, signalSeq: 0 });

  const driver = new RunDriver(worker, claim!, [], 1);
  await run.cancel();
  driver.wake();
  await driver.drive();
  expect(await run.end()).toMatchObject({ kind: "canceled" });
});
