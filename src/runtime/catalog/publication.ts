import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type { PublicationRef } from "../../domain/id.ts";
import type { DelegationLimits } from "../../domain/delegation/limits.ts";

/** An immutable, secret-free, content-addressed release of an agent's definition. */
export interface Publication {
  readonly ref: PublicationRef;
  readonly name: string;
  readonly description: string;
  readonly kind: "model" | "function" | "remote";
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly limits: DelegationLimits;
  /** True only if nothing reachable from the agent can wait for a person (L18). */
  readonly terminalOnly: boolean;
  readonly roster: Readonly<Record<string, { readonly ref: PublicationRef; readonly recursive: boolean }>>;
  readonly definition: Json;
}

/** Names a publication by its content: the same definition has the same ref, on every machine and after every restart (K1.11). */
export function publicationRef(publication: Omit<Publication, "ref">): PublicationRef {
  const digest = sha256Hex(canonicalJson(publication as unknown as Json)).slice(0, 16);
  return `${publication.name}@${digest}` as PublicationRef;
}

export function encodePublication(publication: Publication): string {
  return canonicalJson(publication as unknown as Json);
}

export function decodePublication(body: string): Publication {
  return JSON.parse(body) as Publication;
}
