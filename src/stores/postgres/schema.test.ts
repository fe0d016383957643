import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newDatabase, startPostgres, type TestServer } from "../../../test/support/postgres.ts";
import type { Store } from "../../runtime/ports/store.ts";
import { HandClock } from "../../testing/hand-clock.ts";
import { CARRIES, id, World } from "../../testing/store-contract/world.ts";
import { createPostgresStore } from "./index.ts";
import { readStatements, type StatementName } from "./statements.ts";

/** Small tables, or ones that are read in whole by those who ask for all of it. */
const SMALL: ReadonlySet<string> = new Set([
  "meta",
  "workers",
  "publications",
  "migrations",
  "limits",
  "tombstones",
]);

/** These answer with everything that a tenant has; no step of a Run waits for them. */
const WHOLE_READS: ReadonlySet<string> = new Set([
  "count_runs",
  "delegations",
  "tickets",
  "inspect",
  "prune_workers",
]);

/** Indexes of which a tenant's whole part may be read. */
const FEW: ReadonlySet<string> = new Set(["workers_live", "workers_pkey", "tickets_open"]);

/** Runs in the tables beforehand: most have ended, as in a database that has been in use. */
const FINISHED = 20_000;

let server: TestServer;
let url = "";
let client: pg.Client;
let store: Store;
let world: World;

beforeAll(async () => {
  server = await startPostgres();
  url = await newDatabase(server);
  store = await createPostgresStore({ connectionString: url, clock: new HandClock(), listen: false });
  world = new World(store, new HandClock());
  client = new pg.Client(url);
  await client.connect();
  await fill();
});

afterAll(async () => {
  await client.end();
  await store.close();
  await server.stop();
});

async function fill(): Promise<void> {
  const tenant = world.tenant;
  await client.query(
    `INSERT INTO errand.run_headers
     SELECT $1, n, n, 0, n, 0, 0, 'run_old' || n, 'run_old' || n, NULL, 'thr_old' || n, NULL, 'writer'
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.runs
     SELECT n, n, n, NULL, NULL, 1, n, 0, 0, 1, 0, 0, 1, 0, false, 'ended', $1, 'writer@0123456789abcdef', NULL
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.log
     SELECT n, '3'::xid8, n, n, 0, 0, 0, false, true, $1, 'old' || n, 'd', NULL, '{}', '{}', '[]'
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.delegations
     SELECT $1, 'del_old' || n, n, n, n, 1, 0, 1, false, false, 'closed', 'run_old' || n, 'run_old' || n, 'x', 'y', 'z'
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.inbox
     SELECT n, 'del_old' || n, n, $1, 'consumed', 'result', 'run_old' || n, 'x', 'd', '{}'
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.tickets
     SELECT $1, 'tkt_old' || n, n, 0, NULL, 'closed', 'approval', 'run_old' || n, 'run_old' || n, NULL, NULL, 'x', '{}'
     FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query(
    `INSERT INTO errand.events
     SELECT $1, '3'::xid8, n, 0, 'claimed', 'inc_old', 'run_old' || n, 1 FROM generate_series(1, $2) n`,
    [tenant, FINISHED],
  );
  await client.query("SELECT setval('errand.numbers', $1)", [FINISHED + 1]);
  await client.query("ANALYZE");
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

function scans(plan: Plan): string[] {
  const here =
    plan["Node Type"] === "Seq Scan" && !SMALL.has(plan["Relation Name"] ?? "")
      ? [plan["Relation Name"] ?? ""]
      : [];
  return [...here, ...(plan.Plans ?? []).flatMap(scans)];
}

async function generic(text: string): Promise<Plan> {
  await client.query("SET plan_cache_mode = force_generic_plan");
  await client.query(`PREPARE asked AS ${text}`);
  try {
    const { rows } = await client.query(
      "SELECT parameter_types::text[] AS types FROM pg_prepared_statements",
    );
    const nulls = ((rows[0] as { readonly types: readonly string[] }).types ?? []).map(() => "NULL");
    const list = nulls.length === 0 ? "" : `(${nulls.join(", ")})`;
    const explained = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE asked${list}`);
    return (explained.rows[0] as { readonly "QUERY PLAN": readonly { readonly Plan: Plan }[] })[
      "QUERY PLAN"
    ][0]!.Plan;
  } finally {
    await client.query("DEALLOCATE asked");
  }
}

describe("no statement scans a big table", () => {
  const statements = readStatements("errand");
  const names = (Object.keys(statements) as StatementName[]).filter((name) => !WHOLE_READS.has(name));
  test.each(names)("%s", async (name) => {
    expect(scans(await generic(statements[name]))).toEqual([]);
  });
});

/** Runs the work on one connection and gives the plan of every statement in the functions that it calls. */
async function plansOf(work: (pool: pg.Pool) => Promise<unknown>): Promise<readonly string[]> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on("error", () => undefined);
  const plans: string[] = [];
  const one = await pool.connect();
  one.on("notice", ({ message }) => {
    if (message?.includes("plan:") === true) plans.push(message);
  });
  await one.query(
    `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
     SET client_min_messages = log`,
  );
  one.release();
  await work(pool);
  await pool.end();
  return plans;
}

describe("what the functions do", () => {
  test("scans no big table, and finds no row by its tenant alone", async () => {
    const plans = await plansOf(async (pool) => {
      const through = await createPostgresStore({ pool, clock: world.clock, migrate: false });
      const on = world.on(through);
      const parent = await on.running("p");
      await on.step(
        parent,
        { kind: "park", state: "waiting", dueInMs: null, signalSeqSeen: 0 },
        {
          create: [on.newChild("c", "p", { claim: true })],
          openDelegations: [on.opening("c", "p")],
          openTickets: [
            {
              ticketId: id.ticket("t"),
              runId: id.run("p"),
              kind: "approval",
              deadlineInMs: null,
              body: "{}",
            },
          ],
          claim: { incarnation: parent.incarnation, carries: CARRIES, parent: false },
        },
      );
      const child = { ...parent, runId: id.run("c"), epoch: 1, version: 0 };
      await on.step(
        child,
        { kind: "end", endKind: "completed" },
        {
          deliver: [on.delivery("c", "p")],
          claim: { incarnation: parent.incarnation, carries: CARRIES, parent: true },
        },
      );
      const again = { ...parent, epoch: 2, version: 1 };
      await on.step(
        again,
        { kind: "hold" },
        {
          closeDelegations: [id.delegation("c")],
          readInbox: [{ delegationId: id.delegation("c"), digest: "digest-of-c", status: "consumed" }],
          closeTickets: [{ ticketId: id.ticket("t"), reason: "over" }],
          signals: [on.signal("p")],
          create: [on.newRun("later", { threadId: id.thread("p") })],
        },
      );
      await through.release(on.tenant, again.incarnation, [{ runId: again.runId, epoch: again.epoch }]);
      await through.heartbeat(on.tenant, again.incarnation);
      await on.take("p");
      await through.deregisterWorker(on.tenant, again.incarnation);
      await through.close();
    });
    expect(plans.length).toBeGreaterThan(40);
    const big = plans.filter((plan) =>
      [...plan.matchAll(/Seq Scan on (\w+)/g)].some(([, table]) => !SMALL.has(table ?? "")),
    );
    expect(big).toEqual([]);
    // Workers and open tickets are few, whatever else the tenant has.
    const wide = plans.filter((plan) =>
      [...plan.matchAll(/(?:Scan using|Scan on) (\w+).*\n\s+Index Cond: \(tenant = [^()]*\)\n/g)].some(
        ([, index]) => !FEW.has(index ?? ""),
      ),
    );
    expect(wide).toEqual([]);
  });

  test("a Run row is narrow", async () => {
    const { rows } = await client.query("SELECT max(pg_column_size(r.*)) AS width FROM errand.runs r");
    expect((rows[0] as { readonly width: number }).width).toBeLessThan(200);
  });
});
