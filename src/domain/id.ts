import { ErrandError } from "./errand-error.ts";

declare const kind: unique symbol;

/** A string that was parsed as an identity of kind `K`; a bare string is not one. */
export type Id<K extends string> = string & { readonly [kind]: K };

export type TenantId = Id<"tenant">;
export type RunId = Id<"run">;
export type ThreadId = Id<"thread">;
export type DelegationId = Id<"delegation">;
export type TicketId = Id<"ticket">;
/** `name@digest` of an immutable agent publication. */
export type PublicationRef = Id<"publication">;
/** Names one commit; a repeat under the same id returns the first receipt (L5). */
export type OperationId = Id<"operation">;
/** One life of one worker process; a restart is a new incarnation, whatever the worker is called (L32). */
export type IncarnationId = Id<"incarnation">;

const SHAPES = {
  tenant: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
  run: /^run_[a-z0-9]{8,32}$/,
  thread: /^thr_[a-z0-9]{8,32}$/,
  delegation: /^del_[0-9a-f]{32}$/,
  ticket: /^tkt_[0-9a-f]{32}$/,
  publication: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}@[0-9a-f]{16}$/,
  operation: /^[\x21-\x7e]{1,200}$/,
  incarnation: /^inc_[a-z0-9]{8,32}$/,
} as const;

function parser<K extends keyof typeof SHAPES>(name: K): (text: string) => Id<K> {
  const shape: RegExp = SHAPES[name];
  return (text) => {
    if (typeof text !== "string" || !shape.test(text)) {
      throw new ErrandError(
        "INVALID_ID",
        `${JSON.stringify(text)} is not a ${name} id.`,
        `Give a ${name} id that matches ${shape.source}.`,
      );
    }
    return text as Id<K>;
  };
}

export const parseTenantId: (text: string) => TenantId = parser("tenant");
export const parseRunId: (text: string) => RunId = parser("run");
export const parseThreadId: (text: string) => ThreadId = parser("thread");
export const parseDelegationId: (text: string) => DelegationId = parser("delegation");
export const parseTicketId: (text: string) => TicketId = parser("ticket");
export const parsePublicationRef: (text: string) => PublicationRef = parser("publication");
export const parseOperationId: (text: string) => OperationId = parser("operation");
export const parseIncarnationId: (text: string) => IncarnationId = parser("incarnation");
