import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { type TestServer, newDatabase, startPostgres } from "../support/postgres.ts";
import { Fleet, until } from "./fleet.ts";
import type { FleetMember } from "./fleet-member.ts";

/*
 * The short form of `npm run soak:fleet`: two worker processes on one PostgreSQL database. Moments are not repeatable to
 * the microsecond, so neither is a failure; its message has everything that was found.
 */
const TREES = 24;

let server: TestServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

describe("two workers on one PostgreSQL", () => {
  // Real processes, signals and cut connections in real time: one more go on a machine that is too busy to keep a lease.
  test("K7.1 K7.2 K7.3 L4 L10 one killed, one stopped past its lease, connections cut: every tree ends, once", {
    retry: 1,
  }, async () => {
    await using fleet = await Fleet.open({ url: await newDatabase(server), workers: 2, leaseMs: 1_500 });
    const [first, second] = fleet.members as [FleetMember, FleetMember];
    const trees = fleet.run(TREES, new SeededRandom(7));
    const holds = (member: FleetMember) => async () => (await fleet.held(member)) > 0;

    await until(holds(first));
    const killed = first.incarnation;
    await first.kill();
    // Of the same name and on another host; it takes over by the store's time, and its predecessor is dead for good.
    await first.start();
    expect(first.incarnation).not.toBe(killed);

    await until(holds(second));
    const frozen = second.incarnation;
    await fleet.freeze(second);
    await until(() => second.lost.has(frozen));

    first.proxy.cut();
    second.proxy.swallow();
    await trees;

    const { problems, figures } = await fleet.judge();
    expect(problems).toEqual([]);
    expect(figures.trees).toBe(TREES);
    expect((await fleet.incarnations(first.name)).find((row) => row.incarnation === killed)?.dead).toBe(true);
  });
});
