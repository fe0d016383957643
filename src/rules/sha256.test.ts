import * as fc from "fast-check";
import { expect, it } from "vitest";
import { sha256Hex } from "./sha256.ts";

it.each([
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  [
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
  ["a".repeat(1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"],
])("sha256Hex gives the published digest of %s", (text, digest) => {
  expect(sha256Hex(text)).toBe(digest);
});

it("sha256Hex of a text is that of its UTF-8 bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(sha256Hex(text)).toBe(sha256Hex(new TextEncoder().encode(text)));
      expect(sha256Hex(text)).toMatch(/^[0-9a-f]{64}$/);
    }),
  );
});
