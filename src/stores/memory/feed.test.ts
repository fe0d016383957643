import { expect, test } from "vitest";
import { parseTenantId } from "../../domain/id.ts";
import { Feed } from "./feed.ts";

const tamper = (cursor: string, change: (text: string) => string): string =>
  Buffer.from(change(Buffer.from(cursor, "base64url").toString()), "utf8").toString("base64url");

test("L7 a cursor whose position is none, or lies beyond the feed, is refused", () => {
  const feed = new Feed("store", parseTenantId("acme"), "lifecycle");
  const { cursor } = feed.read(null, 10);
  expect(feed.read(cursor, 10).cursor).toBe(cursor);
  for (const position of ["x", "-1", "1", "0.5", "", "1e3"]) {
    const forged = tamper(cursor, (text) => text.replace(/\d+$/, position));
    expect(() => feed.read(forged, 10)).toThrow(/INVALID_INPUT/);
  }
});
