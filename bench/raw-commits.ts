import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { openSqlite } from "../src/sql/sqlite-driver.ts";

/** Durable commits of one small row a second, by one prepared insert: the limit of this disk and this driver. */
export async function rawCommitsPerSecond(path: string, forMs = 1_000): Promise<number> {
  const db = await openSqlite(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = full");
  db.exec("CREATE TABLE IF NOT EXISTS raw (id INTEGER PRIMARY KEY, body TEXT) STRICT");
  const insert = db.prepare("INSERT INTO raw (body) VALUES (?)");
  const body = "x".repeat(100);
  for (let warm = 0; warm < 50; warm++) insert.run(body);
  const start = performance.now();
  let commits = 0;
  for (; performance.now() - start < forMs; commits++) insert.run(body);
  const perSecond = (commits * 1_000) / (performance.now() - start);
  db.close();
  return perSecond;
}

/** Median of one 4 KiB append with `fdatasync`, in microseconds. */
export function fsyncMicros(path: string): number {
  const file = openSync(path, "a");
  const page = Buffer.alloc(4_096, 1);
  const times: number[] = [];
  for (let at = 0; at < 200; at++) {
    const start = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    times.push((performance.now() - start) * 1_000);
  }
  closeSync(file);
  return Math.round(times.sort((left, right) => left - right)[100] ?? 0);
}
