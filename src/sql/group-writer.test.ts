import { describe, expect, test } from "vitest";
import { GroupWriter } from "./group-writer.ts";
import type { SqlDatabase, SqlStatement } from "./sqlite-driver.ts";

/** A connection that only keeps count of its transactions, and whose lock somebody else may hold. */
class CountingDatabase implements SqlDatabase {
  readonly log: string[] = [];
  lockedFor = 0;
  commitFails = 0;

  exec(sql: string): void {
    this.log.push(sql);
  }

  prepare(sql: string): SqlStatement {
    return {
      run: () => {
        if (sql.startsWith("BEGIN") && this.lockedFor > 0) {
          this.lockedFor -= 1;
          throw sqliteError(5);
        }
        if (sql === "COMMIT" && this.commitFails > 0) {
          this.commitFails -= 1;
          throw sqliteError(13);
        }
        this.log.push(sql);
        return { changes: 0 };
      },
      get: () => undefined,
      all: () => [],
    };
  }

  close(): void {}

  count(sql: string): number {
    return this.log.filter((line) => line === sql).length;
  }
}

function sqliteError(errcode: number): Error {
  return Object.assign(new Error(`SQLite ${errcode}`), { code: "ERR_SQLITE_ERROR", errcode });
}

function writer(db: SqlDatabase, busyTimeoutMs = 1_000, maxGroup = 100) {
  const told = { commits: 0, rollbacks: 0 };
  const group = new GroupWriter(db, {
    busyTimeoutMs,
    maxGroup,
    onBegin() {},
    onCommit: () => (told.commits += 1),
    onRollback: () => (told.rollbacks += 1),
    explain: (error) => new Error(`explained: ${(error as Error).message}`),
  });
  return { group, told };
}

describe("group writer", () => {
  test("G1 what is submitted in one tick is one transaction", async () => {
    const db = new CountingDatabase();
    const { group, told } = writer(db);
    const results = await Promise.all(Array.from({ length: 64 }, (_, at) => group.submit(() => at * 2)));
    expect(results).toEqual(Array.from({ length: 64 }, (_, at) => at * 2));
    expect(db.log).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
    expect(told).toEqual({ commits: 1, rollbacks: 0 });
  });

  test("a group is bounded, and what is left is written in the next turns", async () => {
    const db = new CountingDatabase();
    const { group } = writer(db, 1_000, 10);
    await Promise.all(Array.from({ length: 25 }, (_, at) => group.submit(() => at)));
    expect(db.count("COMMIT")).toBe(3);
  });

  test("G1 a promise settles only after COMMIT", async () => {
    const db = new CountingDatabase();
    const { group } = writer(db);
    let committedWhenSettled = 0;
    await group.submit(() => 1).then(() => (committedWhenSettled = db.count("COMMIT")));
    expect(committedWhenSettled).toBe(1);
  });

  test("G2 one that throws takes nobody with it", async () => {
    const db = new CountingDatabase();
    const { group } = writer(db);
    const calls = [0, 0, 0];
    const job = (at: number, fails: boolean) => () => {
      calls[at] = (calls[at] ?? 0) + 1;
      if (fails) throw new Error(`poison ${at}`);
      return at;
    };
    const outcomes = await Promise.allSettled([
      group.submit(job(0, false)),
      group.submit(job(1, true)),
      group.submit(job(2, false)),
    ]);
    expect(outcomes).toMatchObject([
      { status: "fulfilled", value: 0 },
      { status: "rejected", reason: { message: "explained: poison 1" } },
      { status: "fulfilled", value: 2 },
    ]);
    // First together, where the third is not reached; then one by one.
    expect(calls).toEqual([2, 2, 1]);
    expect(db.count("COMMIT")).toBe(2);
    expect(db.count("ROLLBACK")).toBe(2);
  });

  test("G2 a COMMIT that fails is tried again, job by job", async () => {
    const db = new CountingDatabase();
    db.commitFails = 2;
    const { group } = writer(db);
    const outcomes = await Promise.allSettled([group.submit(() => "a"), group.submit(() => "b")]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "fulfilled"]);
  });

  test("G4 a held lock is waited for", async () => {
    const db = new CountingDatabase();
    db.lockedFor = 4;
    const { group, told } = writer(db);
    expect(await Promise.all([group.submit(() => 1), group.submit(() => 2)])).toEqual([1, 2]);
    expect(told).toEqual({ commits: 1, rollbacks: 4 });
  });

  test("G4 but not for ever, and later jobs are not failed for earlier ones' waiting", async () => {
    const db = new CountingDatabase();
    db.lockedFor = Number.POSITIVE_INFINITY;
    const { group } = writer(db, 40);
    const first = group.submit(() => 1).catch((error: unknown) => (error as Error).message);
    expect(await first).toBe("explained: database is locked");
    db.lockedFor = 1;
    expect(await group.submit(() => 2)).toBe(2);
    await group.drain();
  });

  test("drain waits for everything that is queued", async () => {
    const db = new CountingDatabase();
    db.lockedFor = 3;
    const { group } = writer(db, 1_000, 2);
    let written = 0;
    for (let at = 0; at < 5; at++) void group.submit(() => (written += 1));
    await group.drain();
    expect(written).toBe(5);
  });
});
