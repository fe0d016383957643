import { hash } from "node:crypto";

/** SHA-256 of a text's UTF-8 bytes or of the bytes themselves, as 64 lower-case hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}
