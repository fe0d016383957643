import { randomBytes } from "node:crypto";
import type { IdSource } from "../../runtime/ports/id-source.ts";

/** 24 hex digits from the machine's randomness. */
export const randomIds: IdSource = { next: () => randomBytes(12).toString("hex") };
