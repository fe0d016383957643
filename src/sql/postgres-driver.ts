/*
 * The PostgreSQL driver as this project sees it: what a pool of the package `pg` offers, without its types, so that the
 * package stays an optional peer.
 */

export type PostgresValue = string | number | boolean | null | readonly string[] | readonly number[];

export interface PostgresQuery {
  readonly text: string;
  readonly values?: PostgresValue[];
  /** Set, the statement is prepared under this name once a connection. */
  readonly name?: string;
  /** Milliseconds after which the client gives up on the answer and on the connection. */
  readonly query_timeout?: number;
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

export interface PostgresResult {
  // oxlint-disable-next-line typescript/no-explicit-any -- rows are shaped by the statement that was sent
  readonly rows: any[];
}

export interface PostgresClient {
  query(query: string | PostgresQuery): Promise<PostgresResult>;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  on(event: "error" | "end", listener: (error?: Error) => void): unknown;
}

export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void;
}

/** A pool of `pg`, or anything of that shape. */
export interface PostgresPool {
  query(query: PostgresQuery): Promise<PostgresResult>;
  connect(): Promise<PostgresPoolClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
}

export interface PostgresListener extends PostgresClient {
  connect(): Promise<unknown>;
  end(): Promise<void>;
}

export interface PostgresDriver {
  openPool(connectionString: string, maxConnections: number, connectTimeoutMs: number): PostgresPool;
  openListener(connectionString: string): PostgresListener;
  /** Numbers of 8 bytes as numbers: what this project stores in them stays below 2^53. */
  readonly types: NonNullable<PostgresQuery["types"]>;
}

const INT8 = 20;

/** Loads `pg`; throws what the module loader says when it is not installed. */
export async function loadPostgres(): Promise<PostgresDriver> {
  const { default: pg } = await import("pg");
  return {
    openPool: (connectionString, max, connectTimeoutMs) =>
      new pg.Pool({
        connectionString,
        max,
        connectionTimeoutMillis: connectTimeoutMs,
        keepAlive: true,
        application_name: "errand",
      }) as unknown as PostgresPool,
    openListener: (connectionString) =>
      new pg.Client({
        connectionString,
        keepAlive: true,
        application_name: "errand listener",
      }) as unknown as PostgresListener,
    types: {
      getTypeParser: (oid, format) =>
        oid === INT8 && format !== "binary"
          ? Number
          : (pg.types.getTypeParser(oid, format as "text") as (text: string) => unknown),
    },
  };
}

export type PostgresTrouble =
  /** The same call may go through: a deadlock, a lock not had in time, a row made by two at once. */
  | "passing"
  /** The connection is gone or was never there. Whether the call was carried out is unknown. */
  | "lost"
  | "refused"
  | "full"
  | "corrupt"
  | "read_only"
  | "busy"
  | "schema"
  | "content"
  | "other";

const BY_CODE: Readonly<Record<string, PostgresTrouble>> = {
  "40001": "passing",
  "40P01": "passing",
  "55P03": "passing",
  "23505": "passing",
  "57014": "busy",
  "53300": "busy",
  "53100": "full",
  "25006": "read_only",
  "28000": "refused",
  "28P01": "refused",
  "3D000": "refused",
  "42501": "refused",
  "3F000": "schema",
  "42P01": "schema",
  "42883": "schema",
  "42703": "schema",
  XX001: "corrupt",
  XX002: "corrupt",
};

const BY_CLASS: Readonly<Record<string, PostgresTrouble>> = {
  "08": "lost",
  "57": "lost",
  "53": "busy",
  "22": "content",
  "21": "content",
};

/** What kind of trouble the server or the driver reports. An error without SQLSTATE is one of the connection. */
export function postgresTrouble(error: unknown): PostgresTrouble {
  if (typeof error !== "object" || error === null) return "other";
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  if (typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined) {
    return BY_CODE[code] ?? BY_CLASS[code.slice(0, 2)] ?? "other";
  }
  return error instanceof TypeError ? "content" : "lost";
}
