import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ErrandError } from "../../domain/errand-error.ts";
import type { Errand } from "../library/errand.ts";

/** How long the store may take to answer before the worker counts as not ready. */
const STORE_PATIENCE_MS = 2_000;

export interface HealthOptions {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** The Errand of this process, once it is open. */
  readonly errand: () => Errand | null;
  /** Whether the process has been asked to stop. */
  readonly stopping: () => boolean;
}

/**
 * Answers probes: `GET /health` as long as the process is alive, `GET /ready` while it takes work: registered, its lease
 * fresh, the store answering, and nobody has asked it to stop.
 */
export class WorkerHealth implements AsyncDisposable {
  readonly #options: HealthOptions;
  readonly #server: Server;

  private constructor(options: HealthOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      const reply = (status: number, body: unknown): void => {
        response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
        response.end(request.method === "HEAD" ? undefined : `${JSON.stringify(body)}\n`);
      };
      if (request.method !== "GET" && request.method !== "HEAD") reply(405, { error: "GET or HEAD only" });
      else if (request.url === "/health") reply(200, { alive: true, pid: process.pid });
      else if (request.url === "/ready") {
        void this.#notReady().then((why) => reply(why === null ? 200 : 503, { ready: why === null, why }));
      } else reply(404, { error: "There is /health and /ready." });
    });
    // A probe's connection keeps no process alive.
    this.#server.unref();
  }

  /** @throws ErrandError INVALID_CONFIG when the address cannot be listened on */
  static async listen(options: HealthOptions): Promise<WorkerHealth> {
    const health = new WorkerHealth(options);
    const { host, port } = options;
    try {
      health.#server.listen(port, host);
      await once(health.#server, "listening");
    } catch (cause) {
      throw new ErrandError(
        "INVALID_CONFIG",
        `Nothing can listen on ${host}:${port}: ${(cause as Error).message}.`,
        "Choose another --health-port or --health-host.",
        { cause },
      );
    }
    return health;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Why no work should be counted on; null when it may. */
  async #notReady(): Promise<string | null> {
    if (this.#options.stopping()) return "it is stopping";
    const errand = this.#options.errand();
    const worker = errand?.worker ?? null;
    if (errand === null || worker === null) return "it is starting";
    if (worker.draining) return "it is draining";
    if (!worker.leaseIsFresh()) return "its lease was not renewed in time";
    let timer: NodeJS.Timeout | undefined;
    try {
      const patience = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("no answer in time")), STORE_PATIENCE_MS);
      });
      const workers = await Promise.race([errand.workers(), patience]);
      const isKnown = workers.some((one) => one.incarnation === worker.incarnation && !one.dead);
      return isKnown ? null : "the store does not know it";
    } catch (error) {
      return `the store does not answer: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      clearTimeout(timer);
    }
  }
}
