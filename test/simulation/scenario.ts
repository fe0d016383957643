import type { DelegationLimits } from "../../src/domain/delegation/limits.ts";
import type { FaultRates } from "../../src/testing/fault-plan.ts";
import type { SeededRandom } from "../../src/testing/seeded-random.ts";

/** One thing that an agent's program does. Everything in it is drawn once, so a replay does the same again. */
export type Statement =
  | { readonly do: "tool"; readonly tool: ToolName; readonly input: ToolInput }
  | { readonly do: "run"; readonly agent: string; readonly n: number }
  | { readonly do: "sleep"; readonly ms: number }
  | { readonly do: "ask"; readonly deadlineMs: number | null }
  | { readonly do: "chance" }
  /** All at the same time; of a function agent each in a branch of its own if `branches`. */
  | { readonly do: "together"; readonly branches: boolean; readonly of: readonly Statement[] }
  /** The attempt throws, as long as its number is not above. */
  | { readonly do: "throw"; readonly upTo: number }
  /** Starts over with an empty journal, once. */
  | { readonly do: "again" }
  /** Model agents: a call with arguments that are no JSON, and one of a tool that is not there. */
  | { readonly do: "nonsense" };

export const TOOLS = {
  look: { replay: "safe", effect: "read_only", parallel: true, approval: false },
  count: { replay: "idempotent", effect: "idempotent", parallel: true, approval: false },
  order: { replay: "idempotent", effect: "any", parallel: false, approval: false },
  job: { replay: "durable", effect: "idempotent", parallel: true, approval: false },
  send: { replay: "never", effect: "any", parallel: false, approval: false },
  push: { replay: "never", effect: "any", parallel: true, approval: false },
  sign: { replay: "idempotent", effect: "any", parallel: false, approval: true },
  pay: { replay: "never", effect: "any", parallel: false, approval: true },
} as const;

export type ToolName = keyof typeof TOOLS;

export interface ToolInput {
  readonly x: number;
  /** Time before and after the effect. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** The tool fails after its effect. */
  readonly fails: boolean;
  /** It does not stop when it is told to: its request is on its way. */
  readonly stubborn: boolean;
  readonly [key: string]: number | boolean;
}

export interface AgentPlan {
  readonly name: string;
  readonly kind: "function" | "model";
  readonly mayAsk: boolean;
  /** Claims that it can only end, and then asks all the same. */
  readonly liar: boolean;
  readonly roster: readonly string[];
  readonly program: readonly Statement[];
  readonly maxSteps: number;
}

export interface RootPlan {
  readonly key: string;
  readonly agent: string;
  readonly n: number;
  readonly atMs: number;
  readonly delayMs: number;
  readonly priority: number;
  /** Roots with the same number share a thread. */
  readonly thread: number | null;
  readonly sentTwice: boolean;
  readonly limits: Partial<DelegationLimits>;
}

/** Something the host does to a Run that lives at that moment: the one at `which`, counted through. */
export interface Intervention {
  readonly atMs: number;
  readonly do: "cancel" | "pause";
  readonly which: number;
  /** Pause: how long until it may continue. */
  readonly forMs: number;
}

export interface Scenario {
  readonly seed: number;
  /** Every tool may be repeated and nothing is canceled: what comes out must not depend on any fault. */
  readonly repeatable: boolean;
  readonly agents: readonly AgentPlan[];
  readonly roots: readonly RootPlan[];
  readonly interventions: readonly Intervention[];
  readonly workers: number;
  readonly concurrency: number;
  readonly warmRuns: number;
  readonly continueOnAwait: boolean;
  /** Milliseconds between two looks of the host at its open tickets, at most. */
  readonly answersWithinMs: number;
  readonly rates: FaultRates;
  /** Milliseconds after which nothing goes wrong any more. */
  readonly faultsUntilMs: number;
  /** Workers that are stopped and started again in good order. */
  readonly redeploys: readonly number[];
}

const QUIET: FaultRates = {
  crash: 0,
  drop: 0,
  loseReply: 0,
  double: 0,
  delay: 0,
  longestDelayMs: 0,
  heartbeatsLost: 0,
  partition: 0,
  longestSilenceMs: 0,
  wakeDropped: 0,
  wakeDoubled: 0,
  wakeDelayed: 0,
};

/** Draws a scenario from a seed: small enough to be played in milliseconds, wide enough to meet every rule in a thousand. */
export function drawScenario(seed: number, random: SeededRandom): Scenario {
  const repeatable = random.chance(0.5);
  const agents = drawAgents(random, repeatable);
  const roots = drawRoots(random, agents);
  const interventions: Intervention[] = [];
  if (!repeatable && random.chance(0.6)) {
    const within = random.pick([1_000, 4_000, 12_000]);
    for (let left = random.int(1, 4); left > 0; left--) {
      interventions.push({ atMs: random.int(0, within), do: "cancel", which: random.int(0, 99), forMs: 0 });
    }
  }
  if (random.chance(0.3)) {
    for (let left = random.int(1, 2); left > 0; left--) {
      const forMs = random.int(100, 20_000);
      interventions.push({ atMs: random.int(0, 12_000), do: "pause", which: random.int(0, 99), forMs });
    }
  }
  return {
    seed,
    repeatable,
    agents,
    roots,
    interventions,
    workers: random.int(1, 3),
    concurrency: random.pick([1, 2, 8]),
    warmRuns: random.pick([0, 1, 64]),
    continueOnAwait: random.chance(0.5),
    answersWithinMs: random.pick([1_000, 2_500, 12_000]),
    rates: drawRates(random),
    faultsUntilMs: random.int(5_000, 60_000),
    redeploys: random.chance(0.2) ? [random.int(500, 20_000)] : [],
  };
}

/** The same work with nothing that goes wrong. */
export function withoutFaults(scenario: Scenario): Scenario {
  return { ...scenario, rates: QUIET, faultsUntilMs: 0, redeploys: [] };
}

function drawRates(random: SeededRandom): FaultRates {
  const some = (most: number): number => (random.chance(0.5) ? 0 : random.next() * most);
  return {
    crash: some(0.06),
    drop: some(0.04),
    loseReply: some(0.06),
    double: some(0.05),
    delay: random.pick([0, 0.1, 0.6]),
    longestDelayMs: random.pick([200, 3_000, 25_000]),
    heartbeatsLost: random.pick([0, 0.05, 0.4]),
    partition: some(0.01),
    longestSilenceMs: random.pick([5_000, 40_000]),
    wakeDropped: random.pick([0, 0.2, 1]),
    wakeDoubled: some(0.2),
    wakeDelayed: some(0.3),
  };
}

function drawAgents(random: SeededRandom, repeatable: boolean): AgentPlan[] {
  const levels = random.pick([1, 2, 2, 3]);
  const plans: AgentPlan[] = [];
  const sizes = new Map<string, number>();
  let below: string[] = [];
  for (let level = levels; level >= 0; level--) {
    const names: string[] = [];
    for (let number = random.int(1, 2); number > 0; number--) {
      const name = `${"abcd"[level]}${number}`;
      const kind = random.chance(0.35) ? "model" : "function";
      const mayAsk = random.chance(0.3);
      const liar = !repeatable && level > 0 && !mayAsk && random.chance(0.2);
      const length = random.int(1, level === 0 ? 4 : 3);
      const program: Statement[] = [];
      let left = MOST_RUNS - 1;
      for (let at = 0; at <= length; at++) {
        const small = below.filter((one) => (sizes.get(one) ?? 1) <= left);
        const drawn: Statement =
          at < length
            ? drawStatement(random, { kind, mayAsk, below: small, repeatable })
            : small.length > 0 && random.chance(0.7)
              ? { do: "run", agent: random.pick(small), n: random.int(0, 9) }
              : { do: "together", branches: false, of: [] };
        const size = runsOf(drawn, sizes);
        if (size > left || (drawn.do === "together" && drawn.of.length === 0)) continue;
        left -= size;
        program.push(drawn);
      }
      sizes.set(name, MOST_RUNS - left);
      if (random.chance(0.15))
        program.splice(random.int(0, program.length), 0, { do: "throw", upTo: random.pick([1, 1, 2, 3]) });
      if (kind === "function" && random.chance(0.08)) program.push({ do: "again" });
      const maxSteps = random.chance(0.05) ? 2 : 100;
      plans.push({ name, kind, mayAsk, liar, roster: below, program, maxSteps });
      names.push(name);
    }
    below = names;
  }
  return plans;
}

/** Runs of one tree at most; what a seed costs depends on little else. */
const MOST_RUNS = 9;

/** Runs that a statement starts, with all below them. */
function runsOf(statement: Statement, sizes: ReadonlyMap<string, number>): number {
  if (statement.do === "run") return sizes.get(statement.agent) ?? 1;
  return statement.do === "together" ? statement.of.reduce((sum, one) => sum + runsOf(one, sizes), 0) : 0;
}

interface Able {
  readonly kind: "function" | "model";
  readonly mayAsk: boolean;
  readonly below: readonly string[];
  readonly repeatable: boolean;
}

function drawStatement(random: SeededRandom, able: Able): Statement {
  const roll = random.next();
  if (roll < 0.3 && able.below.length > 0) {
    if (random.chance(0.5)) return { do: "run", agent: random.pick(able.below), n: random.int(0, 9) };
    const of: Statement[] = [];
    for (let left = random.int(2, 3); left > 0; left--) {
      of.push({ do: "run", agent: random.pick(able.below), n: random.int(0, 9) });
    }
    return { do: "together", branches: random.chance(0.3), of };
  }
  if (roll < 0.38 && able.mayAsk) {
    return { do: "ask", deadlineMs: able.repeatable || random.chance(0.4) ? null : random.int(100, 8_000) };
  }
  if (roll < 0.45 && able.kind === "function") return { do: "sleep", ms: random.int(0, 8_000) };
  if (roll < 0.5) return able.kind === "function" ? { do: "chance" } : { do: "nonsense" };
  if (roll < 0.7) {
    const of: Statement[] = [];
    for (let left = random.int(2, 3); left > 0; left--) of.push(drawPart(random, able));
    return { do: "together", branches: random.chance(0.3), of };
  }
  return drawTool(random, able);
}

function drawPart(random: SeededRandom, able: Able): Statement {
  if (able.below.length > 0 && random.chance(0.15)) {
    return { do: "run", agent: random.pick(able.below), n: random.int(0, 9) };
  }
  if (able.kind === "function" && random.chance(0.1)) return { do: "sleep", ms: random.int(0, 3_000) };
  return drawTool(random, able);
}

function drawTool(random: SeededRandom, able: Able): Statement {
  const names = (Object.keys(TOOLS) as ToolName[]).filter(
    (name) => (able.mayAsk || !TOOLS[name].approval) && (!able.repeatable || TOOLS[name].replay !== "never"),
  );
  const slow = random.chance(0.2);
  return {
    do: "tool",
    tool: random.pick(names),
    input: {
      x: random.int(0, 99),
      beforeMs: random.chance(0.5) ? 0 : random.int(1, slow ? 20_000 : 300),
      afterMs: random.chance(0.5) ? 0 : random.int(1, slow ? 20_000 : 300),
      fails: random.chance(0.1),
      stubborn: random.chance(0.2),
    },
  };
}

function drawLimits(random: SeededRandom): Partial<DelegationLimits> {
  return random.pick<Partial<DelegationLimits>>([
    { maxDepth: random.int(1, 2) },
    { maxChildren: random.int(1, 3) },
    { maxParallelChildren: random.int(1, 2) },
    { maxTreeRuns: random.int(2, 8) },
  ]);
}

function drawRoots(random: SeededRandom, agents: readonly AgentPlan[]): RootPlan[] {
  const tops = agents.filter((agent) => agent.name.startsWith("a"));
  const roots: RootPlan[] = [];
  const sharing = random.chance(0.3);
  for (let at = sharing ? random.int(2, 3) : random.int(1, 2); at > 0; at--) {
    roots.push({
      key: `root ${at}`,
      agent: random.pick(tops).name,
      n: random.int(0, 9),
      atMs: random.chance(0.5) ? 0 : random.int(1, 5_000),
      delayMs: random.chance(0.15) ? random.int(1, 5_000) : 0,
      priority: random.chance(0.2) ? random.int(1, 9) : 0,
      thread: sharing ? 0 : null,
      sentTwice: random.chance(0.3),
      limits: random.chance(0.15) ? drawLimits(random) : {},
    });
  }
  return roots;
}
