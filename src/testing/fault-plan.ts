import type { Clock } from "../runtime/ports/clock.ts";
import type { Commit, Store, WakeHint } from "../runtime/ports/store.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** What becomes of one call to a store. */
export type Fault =
  | { readonly kind: "none" }
  /** The process dies before the call is made, or after it was carried out and before its answer is seen. */
  | { readonly kind: "crash_before" }
  | { readonly kind: "crash_after" }
  /** The call never arrives; its caller gets STORE_UNAVAILABLE. */
  | { readonly kind: "drop" }
  /** The call is carried out; its caller gets STORE_UNAVAILABLE all the same. */
  | { readonly kind: "lose_reply" }
  /** The call arrives late, or its answer does. */
  | { readonly kind: "delay"; readonly beforeMs: number; readonly afterMs: number }
  /** The call arrives twice, the second time after its caller has its answer. */
  | { readonly kind: "double"; readonly againAfterMs: number };

export type WakeFault =
  | { readonly kind: "none" | "drop" | "double" }
  | { readonly kind: "delay"; readonly ms: number };

export type StoreMethod = {
  [K in keyof Store]: Store[K] extends (...args: never[]) => Promise<unknown> ? K : never;
}[keyof Store];

/** One call, as a plan sees it. */
export interface StoreCall {
  /** The process that makes it. */
  readonly client: string;
  readonly method: StoreMethod;
  /** What a commit is about: the types of all its facts, and `deliver` if it brings an envelope. Empty for other calls. */
  readonly points: readonly string[];
}

/** Decides what goes wrong, and when. */
export interface FaultPlan {
  call(call: StoreCall): Fault;
  wake(client: string, hint: WakeHint): WakeFault;
}

const NONE = { kind: "none" } as const;

/** Nothing goes wrong. */
export const NO_FAULTS: FaultPlan = { call: () => NONE, wake: () => NONE };

export interface FaultRule {
  /** Only in this process. */
  readonly client?: string;
  readonly method?: StoreMethod;
  /** Only for commits with such a point, for example `call_executing`, `delegation_opened` or `run_ended`. */
  readonly point?: string;
  /** From which matching call on, counted from 1; default the first. */
  readonly nth?: number;
  /** For how many matching calls in a row; default one. */
  readonly times?: number;
  readonly fault: Fault;
}

/** Faults at named points, for a test that means one moment exactly. */
export function plannedFaults(rules: readonly FaultRule[], wakes: "all" | "none" = "all"): FaultPlan {
  const seen = rules.map(() => 0);
  return {
    call(call) {
      for (const [at, rule] of rules.entries()) {
        if (rule.client !== undefined && rule.client !== call.client) continue;
        if (rule.method !== undefined && rule.method !== call.method) continue;
        if (rule.point !== undefined && !call.points.includes(rule.point)) continue;
        const count = (seen[at] ?? 0) + 1;
        seen[at] = count;
        const first = rule.nth ?? 1;
        if (count >= first && count < first + (rule.times ?? 1)) return rule.fault;
      }
      return NONE;
    },
    wake: () => (wakes === "none" ? { kind: "drop" } : NONE),
  };
}

/** How often what goes wrong; every rate is a probability for one call, from 0 to 1. */
export interface FaultRates {
  readonly crash: number;
  readonly drop: number;
  readonly loseReply: number;
  readonly double: number;
  readonly delay: number;
  readonly longestDelayMs: number;
  /** Of each heartbeat: the beginning of a time in which none arrives, so that the lease expires under a live worker. */
  readonly heartbeatsLost: number;
  /** Of each call: the beginning of a time in which no call of that process arrives. */
  readonly partition: number;
  readonly longestSilenceMs: number;
  readonly wakeDropped: number;
  readonly wakeDoubled: number;
  readonly wakeDelayed: number;
}

/**
 * Faults drawn from a seed. After `until` (milliseconds of the clock) nothing goes wrong any more except with wakes, so
 * that a test may demand that all work ends.
 */
export function seededFaults(
  random: SeededRandom,
  rates: FaultRates,
  clock: Clock,
  until: number,
): FaultPlan {
  const silent = new Map<string, number>();
  const heartless = new Map<string, number>();
  const pause = (): number => random.int(1, Math.max(1, rates.longestSilenceMs));
  return {
    call(call) {
      const now = clock.now();
      if (now >= until) return NONE;
      const { client } = call;
      if (random.chance(rates.partition)) silent.set(client, now + pause());
      if ((silent.get(client) ?? 0) > now) return { kind: random.chance(0.5) ? "drop" : "lose_reply" };
      if (call.method === "heartbeat") {
        if (random.chance(rates.heartbeatsLost)) heartless.set(client, now + pause());
        if ((heartless.get(client) ?? 0) > now) return { kind: "drop" };
      }
      if (random.chance(rates.crash)) return { kind: random.chance(0.5) ? "crash_before" : "crash_after" };
      if (random.chance(rates.drop)) return { kind: "drop" };
      if (random.chance(rates.loseReply)) return { kind: "lose_reply" };
      if (random.chance(rates.double)) {
        return { kind: "double", againAfterMs: random.int(0, rates.longestDelayMs) };
      }
      if (!random.chance(rates.delay)) return NONE;
      const ms = random.chance(0.1) ? rates.longestDelayMs : Math.min(20, rates.longestDelayMs);
      return { kind: "delay", beforeMs: random.int(0, ms), afterMs: random.int(0, ms) };
    },
    wake() {
      if (random.chance(rates.wakeDropped)) return { kind: "drop" };
      if (random.chance(rates.wakeDoubled)) return { kind: "double" };
      return random.chance(rates.wakeDelayed) ? { kind: "delay", ms: random.int(1, 500) } : NONE;
    },
  };
}

/** The points of a commit: the types of its facts, `deliver` for an envelope. */
export function commitPoints(commit: Commit): readonly string[] {
  const points = new Set<string>();
  const bodies = [commit.lane, ...commit.create, ...commit.signals];
  for (const one of bodies) {
    if (one === null) continue;
    for (const fact of JSON.parse(one.body) as readonly { readonly type: string }[]) points.add(fact.type);
  }
  if (commit.deliver.length > 0) points.add("deliver");
  return [...points];
}
