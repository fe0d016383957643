// A process that works on a database file for sqlite-store.test.ts: `node --import jiti/register sqlite-child.ts MODE PATH …`
import { createSqliteStore } from "../../src/stores/sqlite/index.ts";
import { openSqlite } from "../../src/sql/sqlite-driver.ts";
import { id, World } from "../../src/testing/store-contract/world.ts";
import { HandClock } from "../../src/testing/hand-clock.ts";

const [mode, path = "", prefix = "x", count = "0"] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** `writers` loops of commits, each waiting for its own; `done` is told after each acknowledgement. */
async function write(writers: number, each: number, done: (name: string) => void): Promise<void> {
  const store = await createSqliteStore(path);
  const world = new World(store, new HandClock());
  const writer = async (number: number): Promise<void> => {
    for (let at = 0; at < each; at++) {
      const name = `${prefix}w${number}n${at}`;
      await world.committed({ operationId: id.operation(name), create: [world.newRun(name)] });
      done(name);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, number) => writer(number)));
  await store.close();
}

switch (mode) {
  case "open": {
    const store = await createSqliteStore(path);
    await store.close();
    say("opened");
    break;
  }
  case "hold": {
    const db = await openSqlite(path);
    db.exec("BEGIN IMMEDIATE");
    say("held");
    process.stdin.resume();
    process.stdin.on("end", () => {
      db.exec("ROLLBACK");
      db.close();
    });
    break;
  }
  case "write":
    await write(16, Number(count), () => {});
    say("written");
    break;
  case "acknowledge":
    await write(16, Number.POSITIVE_INFINITY, say);
    break;
  default:
    throw new Error(`Unknown mode ${mode}`);
}
