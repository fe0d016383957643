import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrandError } from "../../src/domain/errand-error.ts";
import { openSqlite } from "../../src/sql/sqlite-driver.ts";
import { createSqliteStore } from "../../src/stores/sqlite/index.ts";
import { HandClock } from "../../src/testing/hand-clock.ts";
import { id, World } from "../../src/testing/store-contract/world.ts";

const CHILD = fileURLToPath(new URL("./sqlite-child.ts", import.meta.url));

let folder = "";
let path = "";
const children: ChildProcess[] = [];

function start(mode: string, ...rest: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, ["--import", "jiti/register", CHILD, mode, path, ...rest], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  return child;
}

/** Settles with the exit code once the child's output is read to its end. */
async function ended(child: ChildProcess): Promise<number | null> {
  child.stdout?.resume();
  if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  return child.exitCode;
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("The child has no output.");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return line;
}

async function world(options: { readonly busyTimeoutMs?: number } = {}): Promise<World> {
  return new World(await createSqliteStore(path, options), new HandClock());
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "errand-process-"));
  path = join(folder, "errand.db");
});

afterEach(async () => {
  for (const child of children) {
    child.kill("SIGKILL");
    await ended(child);
  }
  children.length = 0;
  rmSync(folder, { recursive: true });
});

describe("several processes on one SQLite file", () => {
  test("K21.2 four processes migrate at once, twice, and one set is applied", async () => {
    for (let round = 0; round < 2; round++) {
      const codes = await Promise.all(Array.from({ length: 4 }, () => ended(start("open"))));
      expect(codes).toEqual([0, 0, 0, 0]);
    }
    const db = await openSqlite(path);
    expect(db.prepare("SELECT count(*) AS ids FROM meta WHERE key = 'store_id'").get()).toMatchObject({
      ids: 1,
    });
    db.close();
  });

  test("K21.1 sixteen writers here and sixteen in another process write 100 commits each", async () => {
    const here = await world();
    const other = start("write", "other", "100");
    const waits: number[] = [];
    const writer = async (number: number): Promise<void> => {
      for (let at = 0; at < 100; at++) {
        const name = `herew${number}n${at}`;
        const before = performance.now();
        await here.committed({ operationId: id.operation(name), create: [here.newRun(name)] });
        waits.push(performance.now() - before);
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, number) => writer(number)));
    expect(await ended(other)).toBe(0);
    expect((await here.store.countRuns(here.tenant)).ready).toBe(3200);
    const log = await here.log();
    expect(log.length).toBe(3200);
    expect(new Set(log.map((row) => row.seq)).size).toBe(3200);
    waits.sort((left, right) => left - right);
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(5_000);
    await here.store.close();
  });

  test("L1 every commit that was acknowledged before kill -9 is there afterwards", async () => {
    for (let round = 0; round < 3; round++) {
      const child = start("acknowledge", `r${round}`);
      const acknowledged: string[] = [];
      if (child.stdout === null) throw new Error("The child has no output.");
      const lines = createInterface(child.stdout);
      lines.on("line", (line) => {
        acknowledged.push(line);
        if (acknowledged.length === 200 + round * 137) child.kill("SIGKILL");
      });
      await once(child, "close");
      expect(child.signalCode).toBe("SIGKILL");
      const after = await world();
      const runs = await Promise.all(
        acknowledged.map((name) => after.store.getRun(after.tenant, id.run(name))),
      );
      expect(acknowledged.filter((_, at) => runs[at] === null)).toEqual([]);
      await after.store.close();
      const db = await openSqlite(path);
      expect(db.prepare("PRAGMA integrity_check").all()).toMatchObject([{ integrity_check: "ok" }]);
      db.close();
    }
  });

  test("a held write lock is waited for, and the commit goes through when it is let go", async () => {
    const here = await world();
    const holder = start("hold");
    expect(await firstLine(holder)).toBe("held");
    let settled = false;
    const commit = here.create(here.newRun("a")).finally(() => (settled = true));
    // The event loop stays free while it waits: fifty timers of this process come round.
    for (let tick = 0; tick < 50; tick++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(settled).toBe(false);
    holder.stdin?.end();
    expect((await commit).claimed).toEqual([]);
    await here.store.close();
  });

  test("a write lock that is never let go ends in STORE_BUSY with the holder's pid, and reads go on", async () => {
    const here = await world({ busyTimeoutMs: 300 });
    await here.create(here.newRun("a"));
    const holder = start("hold");
    expect(await firstLine(holder)).toBe("held");
    const failed = await Promise.allSettled([here.create(here.newRun("b")), here.create(here.newRun("c"))]);
    for (const outcome of failed) {
      const reason: unknown = outcome.status === "rejected" ? outcome.reason : null;
      if (!ErrandError.is(reason)) throw new Error("The commit should have failed with an ErrandError.");
      expect(reason.code).toBe("STORE_BUSY");
      expect(reason.message).toContain(String(holder.pid));
      expect(reason.details["pids"]).toEqual([holder.pid]);
    }
    expect((await here.row("a")).state).toBe("ready");
    holder.stdin?.end();
    await ended(holder);
    await here.create(here.newRun("b"));
    await here.store.close();
  });

  test("another process's commit is hinted", async () => {
    const here = new World(await createSqliteStore(path, { pollMs: 5 }), new HandClock());
    await here.create(here.newRun("a"));
    const hinted = new Promise<string>((resolve) => {
      const stop = here.store.onWake((hint) => {
        if (hint.kind !== "log") return;
        stop();
        resolve(hint.tenant);
      });
    });
    expect(await ended(start("write", "other", "1"))).toBe(0);
    expect(await hinted).toBe(here.tenant);
    await here.store.close();
  });
});
