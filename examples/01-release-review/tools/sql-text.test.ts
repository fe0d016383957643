import { describe, expect, it } from "vitest";
import { normalizeSql, quoteName, splitStatements } from "./sql-text.ts";

describe("splitStatements", () => {
  it("splits at semicolons, those in strings, names and comments aside", () => {
    const sql = `
      -- name: first
      SELECT ';' AS "a;b", [c;d] -- not; here
      FROM t;
      /* nor; here */
      ;; SELECT 'it''s; fine'`;
    expect(splitStatements(sql)).toEqual([
      { name: "first", sql: expect.stringMatching(/^SELECT ';' AS "a;b", \[c;d\]\s+FROM t$/) as string },
      { name: "statement 2", sql: "SELECT 'it''s; fine'" },
    ]);
  });

  it("finds nothing in an empty file", () => {
    expect(splitStatements(" -- only a comment\n;")).toEqual([]);
  });
});

describe("normalizeSql", () => {
  it("gives one spelling to definitions that mean the same", () => {
    const plain = normalizeSql("CREATE TABLE users(id INTEGER, note TEXT DEFAULT 'A b')");
    expect(
      normalizeSql(`create table "users" ( -- people\n  [id] integer,\n  \`note\` text default 'A b' )`),
    ).toBe(plain);
    expect(normalizeSql("CREATE TABLE users(id INTEGER, note TEXT DEFAULT 'a b')")).not.toBe(plain);
    expect(normalizeSql("CREATE TABLE users(\"i d\" INTEGER, note TEXT DEFAULT 'A b')")).not.toBe(plain);
  });
});

it("quotes names that contain quotes", () => {
  expect(quoteName('a"b')).toBe('"a""b"');
});
