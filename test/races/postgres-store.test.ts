import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ErrandError } from "../../src/domain/errand-error.ts";
import type { Commit, CommitOutcome, Store, WakeHint } from "../../src/runtime/ports/store.ts";
import { createPostgresStore } from "../../src/stores/postgres/index.ts";
import { HandClock } from "../../src/testing/hand-clock.ts";
import { CARRIES, type Held, id, World } from "../../src/testing/store-contract/world.ts";
import { newDatabase, onServer, startPostgres, type TestServer } from "../support/postgres.ts";

const END = { kind: "end", endKind: "completed" } as const;

let server: TestServer;
let url = "";
const clock = new HandClock();
const opened: Store[] = [];
const clients: pg.Client[] = [];

beforeAll(async () => {
  // A server of its own, whatever the others use: a transaction that is held open here holds up every feed on it.
  const { ERRAND_TEST_POSTGRES_URL: given, ...rest } = process.env;
  process.env = rest;
  server = await startPostgres({ deadlock_timeout: "200ms" });
  if (given !== undefined) process.env["ERRAND_TEST_POSTGRES_URL"] = given;
});

afterAll(async () => {
  await server.stop();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await Promise.all(clients.splice(0).map((client) => client.end()));
});

/** Stores of one new database, each as a process of its own would have it. */
async function worlds(count: number, options: { readonly listen?: false } = {}): Promise<World[]> {
  url = await newDatabase(server);
  const made: World[] = [];
  for (let at = 0; at < count; at++) {
    const store = await createPostgresStore({ connectionString: url, clock, ...options });
    opened.push(store);
    made.push(made[0] === undefined ? new World(store, clock) : made[0].on(store));
  }
  return made;
}

async function pair(): Promise<readonly [World, World]> {
  const [first, second] = await worlds(2);
  if (first === undefined || second === undefined) throw new Error("There should be two.");
  return [first, second];
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => undefined);
  await client.connect();
  clients.push(client);
  return client;
}

const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}${at}`);

/** A waiting parent and its children, each claimed by one of the workers in turn. */
async function family(
  worldsOf: readonly World[],
  parent: string,
  children: readonly string[],
): Promise<Held[]> {
  const [first] = worldsOf;
  if (first === undefined) throw new Error("There should be a store.");
  const held = await first.running(parent);
  await first.step(
    held,
    { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
    {
      create: children.map((child) => first.newChild(child, parent)),
      openDelegations: children.map((child) => first.opening(child, parent)),
    },
  );
  const claims: Held[] = [];
  for (const [at] of children.entries()) {
    const world = worldsOf[at % worldsOf.length] ?? first;
    const incarnation = await world.worker(`w${at % worldsOf.length}`);
    const [run] = await world.claim(incarnation);
    claims.push(world.held(run, incarnation));
  }
  return claims;
}

describe("two processes on one PostgreSQL database", () => {
  test("K7.2 L4 many claims at once never give a Run to two", async () => {
    const four = await worlds(4);
    const [first] = four;
    if (first === undefined) throw new Error("There should be four.");
    const runs = names("r", 120);
    await first.create(...runs.map((name) => first.newRun(name)));
    const workers = await Promise.all(four.map((world, at) => world.worker(`w${at}`)));
    const taken: string[] = [];
    await Promise.all(
      four.map(async (world, at) => {
        const incarnation = workers[at] ?? id.incarnation("none");
        for (let empty = 0; empty < 3; ) {
          const claimed = await world.claim(incarnation, 7);
          taken.push(...claimed.map((run) => run.runId));
          empty = claimed.length === 0 ? empty + 1 : 0;
        }
      }),
    );
    expect(taken.length).toBe(120);
    expect(new Set(taken).size).toBe(120);
  });

  test("K21.3 L4 of two that write from one version one wins, every time", async () => {
    const [first, second] = await pair();
    const held = await first.running("a");
    for (let round = 0; round < 40; round++) {
      const outcomes = await Promise.all(
        [first, second].map((world) => world.commit({ lane: world.lane(held) })),
      );
      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(["committed", "stale"]);
      held.version += 1;
    }
    expect((await first.log()).filter((row) => row.source === "lane").map((row) => row.version)).toEqual(
      Array.from({ length: 40 }, (_, at) => at + 1),
    );
  });

  test("L5 the log entries of one commit follow one another, however many write at once", async () => {
    const four = await worlds(4);
    const perCommit = names("r", 25);
    for (const round of names("round", 12)) {
      await Promise.all(
        four.map((world, at) =>
          world.create(...perCommit.map((run) => world.newRun(`${round}worker${at}${run}`))),
        ),
      );
    }
    const log = (await four[0]?.log()) ?? [];
    expect(log).toHaveLength(12 * 4 * 25);
    for (let from = 0; from < log.length; from += 25) {
      const rows = log.slice(from, from + 25);
      expect(rows.map((row) => row.operationId !== null)).toEqual(perCommit.map((_, at) => at === 0));
      const commit = rows[0]?.runId.replace(/r0$/, "");
      expect(rows.map((row) => row.runId)).toEqual(perCommit.map((run) => `${commit}${run}`));
    }
  });

  test("L15 ten children ending at once from two workers: ten envelopes, ten signals, no deadlock", async () => {
    const both = await pair();
    const children = names("c", 10);
    for (let round = 0; round < 5; round++) {
      const parent = `p${round}`;
      const ours = children.map((child) => `${child}p${round}`);
      const claims = await family(both, parent, ours);
      const byRun = new Map(claims.map((held, at) => [held.runId, at]));
      const outcomes = await Promise.all(
        ours.map((child) => {
          const at = byRun.get(id.run(child)) ?? 0;
          const world = both[at % 2] ?? both[0];
          const held = claims[at];
          if (held === undefined) throw new Error(`${child} was not claimed.`);
          return world.commit({
            lane: world.lane(held, END),
            deliver: [world.delivery(child, parent)],
            claim: { incarnation: held.incarnation, carries: CARRIES, parent: true },
          });
        }),
      );
      expect(outcomes.map((outcome) => outcome.kind)).toEqual(ours.map(() => "committed"));
      const [world] = both;
      expect((await world.store.listInbox(world.tenant, id.run(parent))).length).toBe(10);
      const row = await world.row(parent);
      expect(row.signalSeq).toBe(10);
      expect(row.state).toBe("running");
      const claimed = outcomes.flatMap((outcome) =>
        outcome.kind === "committed" ? outcome.receipt.claimed : [],
      );
      expect(claimed.length).toBe(1);
    }
    const [{ deadlocks }] = (await onServer(
      url,
      "SELECT deadlocks::integer FROM pg_stat_database WHERE datname = current_database()",
    )) as [{ readonly deadlocks: number }];
    expect(deadlocks).toBe(0);
  });

  test("L5 K5.4 one start sent by two, under two operation ids, makes one Run", async () => {
    const [first, second] = await pair();
    for (let round = 0; round < 20; round++) {
      const run = first.newRun(`s${round}`, { threadId: id.thread("shared") });
      const outcomes = await Promise.all([
        first.commit({ create: [run] }),
        second.commit({ create: [run] }),
        first.commit({ create: [first.newRun(`t${round}`, { threadId: id.thread("shared") })] }),
      ]);
      expect(outcomes.filter((outcome) => outcome.kind === "committed").length).toBe(2);
    }
    const rows = await first.store.listRuns(first.tenant, { threadId: id.thread("shared"), limit: 100 });
    expect(rows.length).toBe(40);
    expect(rows.filter((row) => row.lane).length).toBe(1);
  });

  test("L4 a Run that is queued while the lane's holder ends gets the lane", async () => {
    const [first, second] = await pair();
    for (let round = 0; round < 25; round++) {
      const thread = id.thread(`q${round}`);
      const held = await first.running(`a${round}`, { threadId: thread });
      await Promise.all([
        first.step(held, END),
        second.create(second.newRun(`b${round}`, { threadId: thread })),
      ]);
      const row = await first.row(`b${round}`);
      expect([row.lane, row.state, row.version]).toEqual([true, "ready", 1]);
      await first.ended(`z${round}`, { priority: 9 }).catch(() => undefined);
      const next = await first.store.claim(first.tenant, {
        incarnation: held.incarnation,
        carries: CARRIES,
        limit: 9,
      });
      expect(next.map((run) => run.runId)).toContain(id.run(`b${round}`));
    }
  });

  test("K7.1 L4 a worker that is reaped while it claims in a commit leaves nothing claimed behind", async () => {
    const [first, second] = await pair();
    for (let round = 0; round < 15; round++) {
      const held = await first.running(`p${round}`, {}, `w${round}`);
      clock.advance(60_000);
      const [outcome] = await Promise.all([
        first.commit({
          lane: first.lane(held),
          create: [first.newChild(`c${round}`, `p${round}`, { claim: true })],
          claim: { incarnation: held.incarnation, carries: CARRIES, parent: false },
        }),
        second.store.reapWorkers(second.tenant, 30_000),
      ]);
      await second.store.reapWorkers(second.tenant, 30_000);
      const workers = await second.store.listWorkers(second.tenant);
      const dead = new Set(workers.filter((worker) => worker.dead).map((worker) => worker.incarnation));
      const rows = await second.store.listRuns(second.tenant, { states: ["running"], limit: 100 });
      expect(rows.filter((row) => row.claimedBy !== null && dead.has(row.claimedBy))).toEqual([]);
      expect(dead.has(held.incarnation)).toBe(true);
      const late = await first.commit({
        lane: first.lane({ ...held, version: outcome.kind === "committed" ? 1 : 0 }),
      });
      expect(late).toEqual({ kind: "stale", reason: "epoch" });
      const sweeper = await second.worker(`sweeper${round}`);
      for (const run of await second.claim(sweeper, 50)) await second.step(second.held(run, sweeper), END);
    }
  });
});

describe("a commit that fails underneath", () => {
  test("L5 a connection that is cut in the middle leaves the outcome to be asked for by its operation id", async () => {
    const [first, second] = await pair();
    await first.create(first.newRun("a"));
    const blocker = await connect();
    for (let round = 0; round < 6; round++) {
      await blocker.query("BEGIN");
      await blocker.query("SELECT 1 FROM errand.runs FOR UPDATE");
      const draft = first.draft({ signals: [first.signal("a", { body: `["${round}"]` })] });
      const sent = first.store.commit(draft).catch((error: unknown) => error);
      await waiting();
      await onServer(
        url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      await blocker.query("COMMIT");
      const error = await sent;
      expect(ErrandError.is(error) && error.code).toBe("STORE_UNAVAILABLE");
      const settled = await (round % 2 === 0 ? first : second).store.commit(draft);
      expect(settled.kind).toBe("committed");
      expect((await first.store.commit(draft)).kind).toBe("duplicate");
    }
    expect((await first.row("a")).signalSeq).toBe(6);
  });

  test("L5 a connection that is cut anywhere: each operation is there once", async () => {
    const [first, second] = await pair();
    await first.create(first.newRun("a"));
    let stop = false;
    const killer = (async () => {
      while (!stop) {
        await onServer(
          url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'errand'`,
        );
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
    })();
    let cut = 0;
    const settle = async (world: World, draft: Commit): Promise<CommitOutcome> => {
      for (;;) {
        try {
          return await world.store.commit(draft);
        } catch (error) {
          if (!ErrandError.is(error) || error.code !== "STORE_UNAVAILABLE") throw error;
          cut += 1;
        }
      }
    };
    const writer = async (world: World, at: number): Promise<void> => {
      for (let n = 0; n < 15; n++) {
        const draft = world.draft({
          operationId: id.operation(`cut-${at}-${n}`),
          signals: [world.signal("a", { body: `["${at}.${n}"]` })],
        });
        await settle(world, draft);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, at) => writer(at % 2 === 0 ? first : second, at)));
    stop = true;
    await killer;
    const log = (await first.log()).filter((row) => row.signal > 0);
    expect(log.length).toBe(120);
    expect(new Set(log.map((row) => row.body)).size).toBe(120);
    expect((await first.row("a")).signalSeq).toBe(120);
    expect(cut).toBeGreaterThan(0);
  });

  test("one bad commit in a group fails alone, and its neighbours are written once", async () => {
    const [first] = await pair();
    const bad = first.draft({ create: [first.newRun("bad", { summary: "a NUL: \u0000" })] });
    const outcomes = await Promise.allSettled([
      first.create(first.newRun("a")),
      first.store.commit(bad),
      first.create(first.newRun("b")),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const reason: unknown = outcomes[1].status === "rejected" ? outcomes[1].reason : null;
    expect(ErrandError.is(reason) && reason.code).toBe("INVALID_INPUT");
    expect((await first.log()).length).toBe(2);
  });

  test("L4 a row that somebody holds locked delays the commits that need it and no others", async () => {
    const [first] = await pair();
    await first.create(first.newRun("a"), first.newRun("b"));
    const blocker = await connect();
    await blocker.query("BEGIN");
    await blocker.query("SELECT 1 FROM errand.runs FOR UPDATE LIMIT 1");
    const stuck = first.commit({ signals: [first.signal("a")] }).catch((error: unknown) => error);
    await waiting();
    expect((await first.commit({ signals: [first.signal("b")] })).kind).toBe("committed");
    await blocker.query("COMMIT");
    expect(await stuck).toMatchObject({ kind: "committed" });
  });

  /** Until a backend of this database waits for a lock. */
  async function waiting(): Promise<void> {
    for (;;) {
      const rows = await onServer(
        url,
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      if (rows.length > 0) return;
    }
  }
});

describe("feeds under open transactions", () => {
  test("L7 a reader stops before a transaction that is open, and misses nothing of it", async () => {
    const [first] = await pair();
    await first.create(first.newRun("before"));
    const holder = await connect();
    await holder.query("BEGIN");
    // A commit of another process, written and not yet committed.
    await holder.query("SELECT errand.commit_group('acme', $1::jsonb, $2::text[], NULL)", [
      JSON.stringify({
        runs: [id.run("held")],
        threads: [id.thread("held")],
        commits: [{ op: "held", digest: "d", create_from: 1, create_to: 1 }],
        creates: [
          {
            i: 1,
            t: 1,
            parent: null,
            root: id.run("held"),
            delegation: null,
            agent: "writer",
            publication: "writer@0123456789abcdef",
            depth: 0,
            priority: 0,
            delay: 0,
            claim: false,
            summary: 1,
            body: 2,
          },
        ],
      }),
      ["{}", "[]"],
    ]);
    const seen: string[] = [];
    let cursor: string | null = null;
    const read = async (): Promise<void> => {
      const page = await first.store.readFeed(first.tenant, "lifecycle", cursor, 100);
      cursor = page.cursor;
      seen.push(...page.entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : "")));
    };
    for (const name of names("later", 5)) {
      await first.create(first.newRun(name));
      await read();
    }
    expect(seen).toEqual([id.run("before")]);
    await holder.query("COMMIT");
    await read();
    expect(seen).toEqual(["before", "held", ...names("later", 5)].map(id.run));
  });

  test("L7 K21.3 many writers on four connections: a reader by cursor sees each entry once, in one order", async () => {
    const four = await worlds(4);
    const [first, second, third, reader] = four;
    if (first === undefined || second === undefined || third === undefined || reader === undefined) return;
    let writing = true;
    const seen: string[] = [];
    const reading = (async () => {
      let cursor: string | null = null;
      for (let quiet = 0; quiet < 3; ) {
        const page = await reader.store.readFeed(reader.tenant, "lifecycle", cursor, 13);
        cursor = page.cursor;
        seen.push(...page.entries.map(({ entry }) => (entry.feed === "lifecycle" ? entry.row.runId : "")));
        quiet = page.entries.length === 0 && !writing ? quiet + 1 : 0;
      }
    })();
    await Promise.all(
      [first, second, third].map(async (world, at) => {
        for (let n = 0; n < 60; n++) {
          await Promise.all([1, 2].map((two) => world.create(world.newRun(`x${at}y${n}z${two}`))));
        }
      }),
    );
    writing = false;
    await reading;
    expect(seen.length).toBe(360);
    expect(new Set(seen).size).toBe(360);
  });

  test("L7 a cursor from before a restore is refused by name", async () => {
    const [first] = await pair();
    await first.create(first.newRun("a"));
    const { cursor } = await first.store.readFeed(first.tenant, "lifecycle", null, 10);
    await first.store.readFeed(first.tenant, "lifecycle", cursor, 10);
    // What a restore into another cluster or to an earlier point changes, and what a cursor names.
    const text = Buffer.from(cursor, "base64url").toString("utf8");
    const [storeId, system, rest] = text.split(".") as [string, string, string];
    const timeline = rest.slice(0, rest.indexOf(":"));
    const position = rest.slice(rest.indexOf(":"));
    const others = [
      [storeId, `${BigInt(system) + 1n}`, `${timeline}${position}`],
      [storeId, system, `${Number(timeline) + 1}${position}`],
      [`${storeId}0`, system, rest],
      [storeId, system, rest.replace(/:\d+:(\d+):(\d+)$/, ":99999999:$1:$2")],
    ];
    for (const parts of others) {
      const other = Buffer.from(parts.join("."), "utf8").toString("base64url");
      const error: unknown = await first.store.readFeed(first.tenant, "lifecycle", other, 10).then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(ErrandError.is(error) && error.code).toBe("INVALID_INPUT");
      expect(String(error)).toContain("restored");
    }
  });

  test("L7 a tree's log read by seq ends before what may still be committed into it", async () => {
    const [first, second] = await pair();
    const claims = await family([first, second], "p", ["c1", "c2"]);
    const seen: number[] = [];
    let after = 0;
    let writing = true;
    const reading = (async () => {
      for (let quiet = 0; quiet < 2; ) {
        const rows = await first.store.readLog(first.tenant, { rootRunId: id.run("p") }, after, 50);
        seen.push(...rows.map((row) => row.seq));
        after = rows.at(-1)?.seq ?? after;
        quiet = rows.length === 0 && !writing ? quiet + 1 : 0;
      }
    })();
    await Promise.all(
      claims.map(async (held, at) => {
        const world = at % 2 === 0 ? first : second;
        for (let n = 0; n < 60; n++) await world.step(held);
      }),
    );
    writing = false;
    await reading;
    const all = await first.store.readLog(first.tenant, { rootRunId: id.run("p") }, 0, 1_000);
    expect(seen).toEqual(all.map((row) => row.seq));
  });
});

describe("wakes", () => {
  test("S4 another process's commits are hinted, and one's own are told once", async () => {
    const [first, second] = await pair();
    const hints: WakeHint[] = [];
    const heard = new Promise<void>((resolve) => {
      second.store.onWake((hint) => {
        hints.push(hint);
        if (hint.kind === "ready") resolve();
      });
    });
    const own: WakeHint[] = [];
    first.store.onWake((hint) => own.push(hint));
    await first.create(first.newRun("a"));
    await heard;
    expect(hints.every((hint) => hint.tenant === first.tenant && hint.runId === null)).toBe(true);
    expect(own.filter((hint) => hint.kind === "ready").length).toBe(1);
  });

  test("S4 a listener whose connection was cut is told that something may have been missed", async () => {
    const [first, second] = await pair();
    await second.worker("w1");
    const told = new Promise<void>((resolve) => {
      second.store.onWake((hint) => {
        if (hint.kind === "ended") resolve();
      });
    });
    await onServer(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'errand listener'`,
    );
    await told;
    expect((await first.commit({ signals: [] })).kind).toBe("committed");
  });

  test("without listening, everything is there to be polled for", async () => {
    const [first, second] = await worlds(2, { listen: false });
    if (first === undefined || second === undefined) return;
    await first.create(first.newRun("a"));
    expect((await second.claim(await second.worker("w1"))).length).toBe(1);
  });
});
