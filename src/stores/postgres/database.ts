import type {
  PostgresDriver,
  PostgresPool,
  PostgresPoolClient,
  PostgresValue,
} from "../../sql/postgres-driver.ts";
import { postgresTrouble } from "../../sql/postgres-driver.ts";
import { closedError, storeError } from "./store-error.ts";
import type { StatementName, Statements } from "./statements.ts";

/** They may take long, over all rows of a tenant, so they are waited for as long as the connection stands. */
const UNBOUNDED: ReadonlySet<StatementName> = new Set([
  "erase_tenant",
  "erase_user",
  "inspect",
  "prune_thread",
  "prune_workers",
]);

const READ_TRIES = 5;
const READ_WAIT_MS = 20;

/**
 * The pool with the store's statements. Each call is one statement and one round trip, in a transaction of its own, and
 * leaves nothing behind on its connection but, if allowed, a prepared statement; so a transaction-mode pooler may stand
 * in between.
 */
export class Database {
  readonly schema: string;
  readonly #pool: PostgresPool;
  readonly #statements: Statements;
  readonly #types: PostgresDriver["types"];
  readonly #prepares: boolean;
  readonly #callTimeoutMs: number;
  readonly #ownsPool: boolean;
  /** An idle connection that breaks is replaced by the pool; without a listener its error would end the process. */
  readonly #ignore = (): void => undefined;
  #closed = false;

  constructor(parts: {
    readonly schema: string;
    readonly pool: PostgresPool;
    readonly ownsPool: boolean;
    readonly statements: Statements;
    readonly types: PostgresDriver["types"];
    readonly prepares: boolean;
    /** A connection that is silent for so long is given up: a network may lose what is sent without a word. */
    readonly callTimeoutMs: number;
  }) {
    this.schema = parts.schema;
    this.#pool = parts.pool;
    this.#ownsPool = parts.ownsPool;
    this.#statements = parts.statements;
    this.#types = parts.types;
    this.#prepares = parts.prepares;
    this.#callTimeoutMs = parts.callTimeoutMs;
    parts.pool.on("error", this.#ignore);
  }

  /** Sends one statement and throws what the driver throws. */
  async send<Row>(name: StatementName, values: PostgresValue[]): Promise<readonly Row[]> {
    const patience = UNBOUNDED.has(name) ? {} : { query_timeout: this.#callTimeoutMs };
    const query = { text: this.#statements[name], values, types: this.#types, ...patience };
    const result = await this.#pool.query(
      this.#prepares ? { ...query, name: `${this.schema}.${name}` } : query,
    );
    return result.rows as Row[];
  }

  /** A statement that may be sent again after a passing failure. */
  async call<Row>(name: StatementName, values: PostgresValue[]): Promise<readonly Row[]> {
    if (this.#closed) throw closedError();
    for (let tried = 1; ; tried++) {
      try {
        return await this.send<Row>(name, values);
      } catch (error) {
        if (postgresTrouble(error) !== "passing" || tried >= READ_TRIES) throw storeError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, READ_WAIT_MS * tried * Math.random()));
      if (this.#closed) throw closedError();
    }
  }

  connect(): Promise<PostgresPoolClient> {
    return this.#pool.connect();
  }

  /** Refuses calls from now on. */
  refuse(): void {
    this.#closed = true;
  }

  async end(): Promise<void> {
    this.#closed = true;
    // A pool's last connections may still report an error once it has ended.
    if (this.#ownsPool) await this.#pool.end();
    else this.#pool.off("error", this.#ignore);
  }
}
