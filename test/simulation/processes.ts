import type { IncarnationId, TenantId } from "../../src/domain/id.ts";
import { PublicationCatalog } from "../../src/runtime/catalog/publication-catalog.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { Store } from "../../src/runtime/ports/store.ts";
import type { TelemetryEvent } from "../../src/runtime/ports/telemetry.ts";
import { DEFAULT_SETTINGS } from "../../src/runtime/step/runtime-settings.ts";
import { Worker } from "../../src/runtime/worker/worker.ts";
import { InProcessBus } from "../../src/surfaces/library/in-process-bus.ts";
import type { FaultPlan } from "../../src/testing/fault-plan.ts";
import { FaultyStore } from "../../src/testing/faulty-store.ts";
import type { SeededRandom } from "../../src/testing/seeded-random.ts";
import type { VirtualClock } from "../../src/testing/virtual-clock.ts";
import type { Scenario } from "./scenario.ts";

export interface ProcessParts {
  readonly tenant: TenantId;
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly scenario: Scenario;
  readonly agents: readonly AgentDefinition[];
  readonly plan: FaultPlan;
  readonly random: SeededRandom;
  readonly newId: () => string;
  readonly telemetry: (event: TelemetryEvent) => void;
}

export const TIMES = { leaseMs: 9_000, pollMs: 4_000, sweepMs: 6_000 } as const;

/** One place where a worker runs: when it dies, another process is started there after a while. */
export class WorkerPlace {
  readonly #parts: ProcessParts;
  readonly #name: string;
  #worker: Worker | null = null;
  #connection: FaultyStore | null = null;
  #life = 0;
  #closed = false;

  constructor(parts: ProcessParts, name: string) {
    this.#parts = parts;
    this.#name = name;
    this.#begin();
  }

  /** Stops the worker in good order and starts another one at once. */
  async redeploy(): Promise<void> {
    const worker = this.#worker;
    const connection = this.#connection;
    if (worker === null || connection === null || this.#closed) return;
    await worker.stop(2_000).catch((error: unknown) => {
      if (!(error instanceof AggregateError)) throw error;
    });
    if (!connection.dead && this.#connection === connection) this.#begin();
  }

  close(): void {
    this.#closed = true;
    this.#connection?.crash();
  }

  #begin(): void {
    if (this.#closed) return;
    const { tenant, clock, agents, scenario, newId, plan, random } = this.#parts;
    this.#life += 1;
    const connection: FaultyStore = new FaultyStore(this.#parts.store, {
      client: `${this.#name}.${this.#life}`,
      clock,
      plan,
      onCrash: () => {
        worker.kill();
        if (this.#closed) return;
        clock.timer(random.int(0, 6_000), () => this.#begin());
      },
    });
    const catalog = new PublicationCatalog(connection);
    for (const agent of agents) catalog.load(agent);
    const worker: Worker = new Worker({
      tenant,
      store: connection,
      catalog,
      clock,
      bus: new InProcessBus(),
      telemetry: { emit: (event) => this.#parts.telemetry(event) },
      // Where all is repeatable, dying often must not end a Run either.
      settings: { ...DEFAULT_SETTINGS, maxFruitlessClaims: scenario.repeatable ? 1_000 : 5 },
      options: {
        name: this.#name,
        host: "simulated",
        pid: 1,
        concurrency: scenario.concurrency,
        warmRuns: scenario.warmRuns,
        ...TIMES,
      },
      isProcessAlive: () => true,
      newIncarnation: () => `inc_${newId()}` as IncarnationId,
    });
    this.#connection = connection;
    this.#worker = worker;
    // A worker that cannot even register gives up like a process that exits, and is started again.
    worker.start().catch(() => connection.crash());
  }
}
