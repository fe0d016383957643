import { describe, expect, test } from "vitest";
import { functionAgent } from "../agents/function/function-agent.ts";
import { ErrandError } from "../domain/errand-error.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { createErrand } from "../surfaces/library/create-errand.ts";
import { type FaultRule, plannedFaults } from "./fault-plan.ts";
import { FaultyStore } from "./faulty-store.ts";
import { checkInvariants } from "./history-checks.ts";
import { SeededRandom } from "./seeded-random.ts";
import { VirtualClock, settled } from "./virtual-clock.ts";

const child = functionAgent({
  name: "child",
  version: "1",
  inputSchema: true,
  outputSchema: true,
  run: () => "done",
});
const parent = functionAgent({
  name: "parent",
  version: "1",
  inputSchema: true,
  outputSchema: true,
  roster: [child],
  run: (ctx) => ctx.run(child, null),
});

/** Plays one parent and its child under a plan, all in virtual time. */
async function play(rules: readonly FaultRule[], wakes: "all" | "none" = "all") {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const connect = (client: string): FaultyStore =>
    new FaultyStore(store, { client, clock, plan: plannedFaults(rules, wakes) });
  const first = connect("first");
  const doomed = await createErrand({ store: first, agents: [parent], clock });
  const second = await createErrand({ store: connect("second"), agents: [parent], clock });
  let end: unknown;
  const run = await second.start(parent, null);
  void run.end().then((how) => (end = how));
  for (let turns = 0; end === undefined && turns < 500; turns++) {
    await settled();
    // What a process that has died does not do any more.
    if (first.dead) doomed.worker?.kill();
    if (end === undefined) clock.advanceToNext();
  }
  await checkInvariants(store, second.tenant);
  const log = await store.readLog(second.tenant, { all: true }, 0, 1_000);
  const children = log.filter((row) => row.body.includes('"run_created"')).length - 1;
  await second.worker?.stop(0);
  doomed.worker?.kill();
  return { end, children, dead: first.dead, elapsedMs: clock.now() - 1_700_000_000_000 };
}

describe("a faulty connection", () => {
  const done = { kind: "completed", output: "done" };

  test.each(["crash_before", "crash_after", "drop", "lose_reply"] as const)(
    "L14: %s at any commit of a delegation meets the same child",
    async (kind) => {
      const points = [
        "attempt_started",
        "delegation_opened",
        "deliver",
        "child_result_consumed",
        "run_ended",
      ];
      for (const point of points) {
        const { end, children, dead } = await play([{ client: "first", point, fault: { kind } }]);
        const died = dead && kind.startsWith("crash");
        expect({ point, end, children, dead }).toEqual({ point, end: done, children: 1, dead: died });
      }
    },
  );

  test("L5: a commit that arrives twice is one commit", async () => {
    const fault = { kind: "double", againAfterMs: 0 } as const;
    expect(await play([{ method: "commit", times: 100, fault }])).toMatchObject({ end: done, children: 1 });
  });

  test("with every wake dropped the work still ends, by polling", async () => {
    const { end, elapsedMs } = await play([], "none");
    expect(end).toEqual(done);
    expect(elapsedMs).toBeLessThan(5_000);
  });

  test("answers what was lost with STORE_UNAVAILABLE, and nothing at all once it is dead", async () => {
    const clock = new VirtualClock();
    const plan = plannedFaults([{ method: "countRuns", nth: 2, fault: { kind: "drop" } }]);
    let told = 0;
    const store = new FaultyStore(createMemoryStore({ clock }), {
      client: "one",
      clock,
      plan,
      onCrash: () => (told += 1),
    });
    const tenant = "acme" as Parameters<FaultyStore["countRuns"]>[0];
    expect(await store.countRuns(tenant)).toMatchObject({ ready: 0 });
    await expect(store.countRuns(tenant)).rejects.toSatisfy(
      (error) => ErrandError.is(error) && error.code === "STORE_UNAVAILABLE",
    );
    let heard = false;
    store.crash();
    store.crash();
    void store.countRuns(tenant).finally(() => (heard = true));
    await settled();
    expect([told, heard, store.dead]).toEqual([1, false, true]);
  });
});

test("a virtual clock moves from timer to timer, in the order in which they were set", async () => {
  const clock = new VirtualClock(0);
  const seen: string[] = [];
  clock.timer(20, () => seen.push(`b ${clock.now()}`));
  clock.timer(10, () => seen.push(`a ${clock.now()}`));
  clock.timer(20, () => seen.push(`c ${clock.now()}`));
  clock.timer(15, () => seen.push("never"))();
  void clock.sleep(30).then(() => seen.push(`d ${clock.now()}`));
  expect(clock.nextAt).toBe(10);
  expect(clock.advanceToNext()).toBe(true);
  clock.advance(15);
  expect([...seen, clock.now()]).toEqual(["a 10", "b 20", "c 20", 25]);
  expect(clock.advanceToNext()).toBe(true);
  await settled();
  expect(seen.at(-1)).toBe("d 30");
  expect([clock.advanceToNext(), clock.nextAt]).toEqual([false, null]);
});

test("seeded chance repeats, and a fork leaves it alone", () => {
  const draw = (random: SeededRandom): number[] => Array.from({ length: 5 }, () => random.int(0, 9));
  const one = new SeededRandom(7);
  const other = new SeededRandom(7);
  expect(draw(other.fork("x"))).not.toEqual(draw(other.fork("y")));
  expect(draw(one)).toEqual(draw(other));
  expect(draw(new SeededRandom(8))).not.toEqual(draw(new SeededRandom(7)));
  expect(() => one.pick([])).toThrow(RangeError);
});
