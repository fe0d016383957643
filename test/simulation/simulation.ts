import { createHash } from "node:crypto";
import { type DelegationId, type RunId, type ThreadId, parseTenantId } from "../../src/domain/id.ts";
import type { RunEnd } from "../../src/domain/run/run-end.ts";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import type { LogRow, Store } from "../../src/runtime/ports/store.ts";
import { decodeFacts } from "../../src/runtime/run/loaded-run.ts";
import { verifyStore } from "../../src/runtime/verify/verify-store.ts";
import { type FaultPlan, seededFaults } from "../../src/testing/fault-plan.ts";
import { FaultyStore } from "../../src/testing/faulty-store.ts";
import { InvariantWatch, problemText } from "../../src/testing/history-checks.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { VirtualClock, settled } from "../../src/testing/virtual-clock.ts";
import { buildAgents } from "./agents.ts";
import { CallLedger, observed } from "./effects.ts";
import { FakeService } from "./fake-service.ts";
import { SimulatedHost } from "./host.ts";
import { type ProcessParts, WorkerPlace } from "./processes.ts";
import { type Scenario, drawScenario, withoutFaults } from "./scenario.ts";

const TENANT = parseTenantId("sim");
/** Virtual time within which everything must have ended, counted from the last fault. */
const HORIZON_MS = 30 * 60_000;
/** A sweep, and the time in which a worker that died last is replaced. */
const INTENT_MS = 30_000;

export interface SimulationOptions {
  /** Opens a new, empty store on the clock. */
  readonly open: (clock: VirtualClock) => Promise<Store>;
  /** Told of every fault, every commit and every event, for a look at one seed. */
  readonly log?: (line: string) => void;
}

export interface Played {
  readonly seed: number;
  /** What is wrong; empty if all laws hold. */
  readonly problems: readonly string[];
  /** Digest of everything that happened, in its order: the same seed has the same. */
  readonly trace: string;
  readonly runs: number;
  readonly facts: number;
  readonly virtualMs: number;
  readonly ends: ReadonlyMap<RunId, RunEnd>;
  readonly histories: ReadonlyMap<ThreadId, string>;
}

/**
 * Plays one seed. Where nothing of it may depend on any fault, its twin without faults is played as well, and both must
 * come to the same ends and the same histories (L9).
 */
export async function simulate(seed: number, options: SimulationOptions): Promise<Played> {
  const scenario = drawScenario(seed, new SeededRandom(`scenario ${seed}`));
  const played = await play(scenario, options);
  if (!scenario.repeatable || played.problems.length > 0) return played;
  options.log?.("the same without faults:");
  const twin = await play(withoutFaults(scenario), options);
  const problems = [
    ...twin.problems.map((problem) => `without faults: ${problem}`),
    ...differences("end of", played.ends, twin.ends),
    ...differences("history of", played.histories, twin.histories),
  ];
  return { ...played, problems };
}

function differences(
  what: string,
  played: ReadonlyMap<string, unknown>,
  twin: ReadonlyMap<string, unknown>,
): string[] {
  const problems: string[] = [];
  for (const id of new Set([...played.keys(), ...twin.keys()])) {
    const [here, there] = [JSON.stringify(played.get(id)), JSON.stringify(twin.get(id))];
    if (here !== there) problems.push(`${what} ${id}: ${here}, and without faults ${there}`);
  }
  return problems;
}

async function play(scenario: Scenario, options: SimulationOptions): Promise<Played> {
  const clock = new VirtualClock();
  const world = new World(scenario, clock, await options.open(clock), options.log);
  try {
    await world.open();
    return await world.play();
  } finally {
    await world.close();
  }
}

/** One seed at work: the store, the workers, the host, the service outside, and all that is looked at meanwhile. */
class World {
  readonly #scenario: Scenario;
  readonly #clock: VirtualClock;
  readonly #store: Store;
  readonly #log: ((line: string) => void) | undefined;
  readonly #service: FakeService;
  readonly #watch: InvariantWatch;
  readonly #ledger = new CallLedger();
  readonly #places: WorkerPlace[] = [];
  readonly #problems: string[] = [];
  readonly #trace = createHash("sha256");
  readonly #ends = new Map<RunId, RunEnd>();
  readonly #childOf = new Map<DelegationId, RunId>();
  /** Children that are to be told to cancel, and since when nothing can keep that from them. */
  readonly #intents = new Map<RunId, number>();
  readonly #faultsUntil: number;
  readonly #feed: number[] = [];
  readonly #feedRandom: SeededRandom;
  #cursor: string | null = null;
  #host: SimulatedHost | null = null;
  #facts = 0;

  constructor(
    scenario: Scenario,
    clock: VirtualClock,
    store: Store,
    log: ((line: string) => void) | undefined,
  ) {
    this.#scenario = scenario;
    this.#clock = clock;
    this.#log = log;
    this.#store = observed(store, (commit, outcome) => this.#ledger.committed(commit, outcome));
    this.#watch = new InvariantWatch(store, TENANT);
    this.#faultsUntil = clock.now() + scenario.faultsUntilMs;
    this.#feedRandom = new SeededRandom(`feed ${scenario.seed}`);
    this.#service = new FakeService(clock, (key) => {
      if (!this.#ledger.hasBegun(key))
        this.#problem(`the effect of ${key} came before the commit that begins it (L8)`);
    });
  }

  async open(): Promise<void> {
    const clock = this.#clock;
    const scenario = this.#scenario;
    const agents = buildAgents(scenario, clock, this.#service);
    let ids = 0;
    const newId = (): string => `id${String(++ids).padStart(10, "0")}`;
    const random = new SeededRandom(`faults ${scenario.seed}`);
    const until = clock.now() + scenario.faultsUntilMs;
    const plan = this.#told(seededFaults(random.fork("workers"), scenario.rates, clock, until));
    const common = { tenant: TENANT, clock, scenario, agents, newId };
    const hostPlan = seededFaults(random.fork("host"), { ...scenario.rates, crash: 0 }, clock, until);
    let open = false;
    const connection = new FaultyStore(this.#store, {
      client: "host",
      clock,
      plan: {
        call: (call) => (open ? hostPlan.call(call) : { kind: "none" }),
        wake: (client, hint) => hostPlan.wake(client, hint),
      },
    });
    this.#host = await SimulatedHost.open({
      ...common,
      store: connection,
      random: random.fork("people"),
      problem: (what) => this.#problem(what),
    });
    open = true;
    const parts: ProcessParts = {
      ...common,
      store: this.#store,
      plan,
      random: random.fork("restarts"),
      telemetry: (event) => {
        this.#log?.(`${this.#time()} ${JSON.stringify(event)}`);
        if (event.type === "unexpected") this.#problem(`unexpected: ${String(event.error)}`);
      },
    };
    for (let at = 0; at < scenario.workers; at++) this.#places.push(new WorkerPlace(parts, `w${at}`));
    for (const atMs of scenario.redeploys) clock.timer(atMs, () => void this.#places[0]?.redeploy());
  }

  async play(): Promise<Played> {
    const began = this.#clock.now();
    const horizon = began + this.#scenario.faultsUntilMs + HORIZON_MS;
    for (;;) {
      await settled();
      await this.#look();
      if (this.#problems.length > 0 || (await this.#isOver())) break;
      if (this.#clock.now() > horizon) {
        await this.#tellStuck();
        break;
      }
      if (!this.#clock.advanceToNext()) {
        this.#problem("nothing is left that could move time");
        break;
      }
    }
    await this.#judge();
    for (const line of this.#service.trace) this.#trace.update(line);
    return {
      seed: this.#scenario.seed,
      problems: this.#problems,
      trace: this.#trace.digest("hex"),
      runs: this.#watch.runs,
      facts: this.#facts,
      virtualMs: this.#clock.now() - began,
      ends: this.#ends,
      histories: this.#watch.histories,
    };
  }

  async close(): Promise<void> {
    for (const place of this.#places) place.close();
    await this.#host?.close();
    await settled();
    await this.#store.close();
  }

  #problem(what: string): void {
    this.#problems.push(what);
    this.#log?.(`${this.#time()} PROBLEM ${what}`);
  }

  #time(): string {
    return String(this.#clock.now() % 100_000_000).padStart(9);
  }

  #told(plan: FaultPlan): FaultPlan {
    const log = this.#log;
    if (log === undefined) return plan;
    return {
      call: (call) => {
        const fault = plan.call(call);
        const what = `${call.client} ${call.method} ${call.points.join(" ")}`;
        if (fault.kind !== "none" || call.method === "commit")
          log(`${this.#time()} ${what} ${JSON.stringify(fault)}`);
        return fault;
      },
      wake: (client, hint) => plan.wake(client, hint),
    };
  }

  /** Holds what was committed since the last look against the laws, and reads the feed on from its cursor. */
  async #look(): Promise<void> {
    for (const problem of await this.#watch.look((row) => this.#read(row)))
      this.#problem(problemText(problem));
    if (!this.#feedRandom.chance(0.1)) return;
    const page = await this.#store.readFeed(TENANT, "lifecycle", this.#cursor, this.#feedRandom.int(1, 5));
    for (const { seq } of page.entries) this.#feed.push(seq);
    this.#cursor = page.cursor;
  }

  /** An intent to cancel leaves at once, or with the next sweep: it does not wait for the child to end by itself (L17). */
  #followIntent(row: LogRow, fact: RunFact): void {
    if (fact.type === "delegation_opened") this.#childOf.set(fact.delegationId, fact.childRunId);
    else if (fact.type === "delegation_cancel_requested") {
      const child = this.#childOf.get(fact.delegationId);
      if (child !== undefined) this.#intents.set(child, Math.max(row.at, this.#faultsUntil));
    } else if (fact.type === "cancel_requested") this.#intents.delete(row.runId);
    else if (fact.type === "run_ended") {
      const since = this.#intents.get(row.runId);
      this.#intents.delete(row.runId);
      if (since !== undefined && row.at > since + INTENT_MS) {
        this.#problem(`${row.runId} ended, and was not told within ${row.at - since} ms to cancel (L17)`);
      }
    }
  }

  #read(row: LogRow): void {
    const line = `${row.runId} ${row.source} ${row.version} ${row.signal} ${row.at} ${row.body}\n`;
    this.#trace.update(line);
    this.#log?.(`${this.#time()}   ${line.trimEnd()}`);
    const facts = decodeFacts(row.body);
    this.#ledger.read(row.runId, facts);
    for (const fact of facts) {
      this.#facts += 1;
      if (fact.type === "run_ended") this.#ends.set(row.runId, fact.end);
      this.#followIntent(row, fact);
    }
  }

  async #isOver(): Promise<boolean> {
    if (this.#host?.done !== true || this.#watch.runs === 0 || this.#watch.liveRuns > 0) return false;
    return (await this.#store.pendingIntents(TENANT, 1)).length === 0;
  }

  async #tellStuck(): Promise<void> {
    const rows = await this.#store.listRuns(TENANT, { limit: 1_000, order: "oldest" });
    const live = rows.filter((row) => row.state !== "ended");
    const intents = (await this.#store.pendingIntents(TENANT, 100)).length;
    const lines = live.map(
      (row) =>
        `${row.runId} (${row.agent}) ${row.state}, due ${row.dueAt}, held by ${row.claimedBy}: ${row.summary}`,
    );
    this.#problem(`not ended within the horizon, ${intents} intents pending: ${lines.join("; ")}`);
  }

  /** What can only be said when all is over. */
  async #judge(): Promise<void> {
    for (const problem of this.#ledger.check(this.#service)) this.#problem(problem);
    const { problems } = await verifyStore(this.#store, TENANT);
    for (const problem of problems) this.#problem(problemText(problem));
    const rest = await this.#store.readFeed(TENANT, "lifecycle", this.#cursor, 100_000);
    const whole = await this.#store.readFeed(TENANT, "lifecycle", null, 100_000);
    const read = [...this.#feed, ...rest.entries.map(({ seq }) => seq)].join(" ");
    if (read !== whole.entries.map(({ seq }) => seq).join(" "))
      this.#problem("the feed was not read whole (L7)");
  }
}
