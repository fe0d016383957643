import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import type { FleetOrder } from "./fleet-worker.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** A place in the fleet: one worker process at a time under one name, each on another host, behind one proxy. */
export class FleetMember {
  readonly name: string;
  readonly proxy: TcpProxy;
  readonly problems: string[] = [];
  /** Effect keys of the tool calls that were stopped in this place. */
  readonly aborted = new Set<string>();
  /** Incarnations that have noticed the loss of their lease. */
  readonly lost = new Set<string>();
  readonly #order: Omit<FleetOrder, "host">;
  #process: ChildProcess | null = null;
  #gone: Promise<void> = Promise.resolve();
  #incarnation = "";
  #started = 0;
  #goes = false;

  constructor(order: Omit<FleetOrder, "host">, proxy: TcpProxy) {
    this.name = order.name;
    this.#order = order;
    this.proxy = proxy;
  }

  /** That the process began as. */
  get incarnation(): string {
    return this.#incarnation;
  }

  /** Settles once the worker carries Runs. */
  async start(): Promise<void> {
    const order: FleetOrder = { ...this.#order, host: `${this.name}-host-${++this.#started}` };
    const child = spawn(
      process.execPath,
      [join(HERE, "launch.mjs"), join(HERE, "fleet-worker.ts"), JSON.stringify(order)],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    this.#process = child;
    this.#goes = false;
    let errors = "";
    child.stderr.on("data", (chunk) => (errors = (errors + String(chunk)).slice(-4_000)));
    let isReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => (isReady = resolve));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [word, rest = ""] = line.split(/ (.*)/);
      if (word === "lost") this.lost.add(rest);
      else if (word === "aborted") this.aborted.add(rest);
      else if (word === "unexpected") this.problems.push(`${this.name}: ${rest}`);
      else if (word === "ready") {
        this.#incarnation = rest;
        isReady();
      }
    });
    this.#gone = once(child, "close").then(([code, signal]) => {
      if (this.#process !== child) return;
      this.#process = null;
      if (!this.#goes || (signal !== "SIGKILL" && code !== 0))
        this.problems.push(`${this.name} ended with ${String(code ?? signal)}: ${errors}`);
    });
    await Promise.race([ready, this.#gone]);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.kill(signal);
  }

  /** Kills the process, which has no time to say anything. */
  async kill(): Promise<void> {
    this.#goes = true;
    this.#process?.kill("SIGKILL");
    await this.#gone;
  }

  /** Lets the process hand back what it holds and end. */
  async stop(): Promise<void> {
    this.#goes = true;
    this.#process?.kill("SIGTERM");
    await this.#gone;
  }

  async dispose(): Promise<void> {
    await this.kill();
    await this.proxy.stop();
  }
}
