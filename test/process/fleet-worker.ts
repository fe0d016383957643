import { type Errand, ErrandError, type TelemetryEvent, createErrand } from "errand";
import { createPostgresStore } from "errand/postgres";
import { fleetAgents } from "./fleet-agents.ts";

/** What a worker of the fleet is told, as JSON in its first argument. */
export interface FleetOrder {
  readonly url: string;
  readonly name: string;
  readonly host: string;
  readonly counter: string;
  readonly leaseMs: number;
}

/** How long a store is waited for at the start. */
const REOPEN_MS = 100;

/**
 * Carries Runs until SIGTERM. Prints `ready <incarnation>`, `lost <incarnation>` when its lease was lost, `aborted <key>`
 * when a tool was stopped, and `unexpected <what>` for what must not happen.
 */
export async function main(args: readonly string[]): Promise<number> {
  const { url, name, host, counter, leaseMs } = JSON.parse(args[0] ?? "") as FleetOrder;
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const stop = new Promise<void>((resolve) => process.once("SIGTERM", resolve));
  const agent = fleetAgents(counter, (key) => say(`aborted ${key}`));
  const open = async (): Promise<Errand> => {
    const store = await createPostgresStore({ connectionString: url, callTimeoutMs: 2 * leaseMs });
    return createErrand({
      store,
      agents: [agent],
      worker: { name, host, leaseMs, sweepMs: leaseMs / 4, pollMs: 200 },
      // A Run whose workers are killed over and over is what this is about, not a reason to give up.
      settings: { maxFruitlessClaims: 1_000 },
      telemetry: { emit: (event) => tell(event, say) },
    });
  };
  await using errand = await persist(open);
  say(`ready ${errand.worker?.incarnation}`);
  await stop;
  return 0;
}

function tell(event: TelemetryEvent, say: (line: string) => void): void {
  if (event.type === "worker_lost_lease") say(`lost ${event.incarnation}`);
  if (event.type === "unexpected") say(`unexpected ${JSON.stringify(event)} ${String(event.error)}`);
}

/** Tries again while the store cannot be reached, as whoever starts workers does. */
async function persist<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!ErrandError.is(error) || !error.code.startsWith("STORE_")) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
  }
}
