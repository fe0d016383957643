import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Json } from "../../src/rules/json.ts";

const MAIN = fileURLToPath(new URL("../../dist/surfaces/cli/main.js", import.meta.url));
const PATIENCE_MS = 40_000;

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Default: the folder itself. */
  readonly cwd?: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves once stdout and stderr together match. */
  readonly says: (pattern: RegExp) => Promise<void>;
  /** What it has printed so far, on both streams. */
  readonly printed: () => string;
}

/** A user's folder, with the built program run in it. Everything it started is gone when it is closed. */
export class CliFolder {
  readonly path = mkdtempSync(join(tmpdir(), "errand-cli-"));
  readonly #started = new Set<ChildProcess>();

  write(name: string, text: string): string {
    const file = join(this.path, name);
    writeFileSync(file, text);
    return file;
  }

  has(name: string): boolean {
    return existsSync(join(this.path, name));
  }

  start(args: readonly string[], options: CliOptions = {}): Started {
    const { NO_COLOR: _, FORCE_COLOR: __, ...clean } = process.env;
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: options.cwd ?? this.path,
      env: { ...clean, LANG: "C.UTF-8", ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#started.add(child);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const finished = new Promise<Finished>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        this.#started.delete(child);
        resolve({ code, signal, stdout, stderr });
      });
    });
    const says = (pattern: RegExp): Promise<void> =>
      until(
        () => pattern.test(stdout + stderr),
        () => `${String(pattern)} in:\n${stdout}${stderr}`,
      );
    return { child, finished, says, printed: () => stdout + stderr };
  }

  /** Runs one command to its end. */
  async run(
    args: readonly string[],
    options: CliOptions & { readonly input?: string } = {},
  ): Promise<Finished> {
    const { child, finished } = this.start(args, options);
    child.stdin?.end(options.input ?? "");
    return finished;
  }

  /** The one document of a command with `--json`. */
  async json<T = Record<string, Json>>(...args: readonly string[]): Promise<T> {
    const { stdout, stderr } = await this.run([...args, "--json"]);
    try {
      return JSON.parse(stdout) as T;
    } catch {
      throw new Error(`errand ${args.join(" ")} --json printed no document: ${stdout}${stderr}`);
    }
  }

  async close(): Promise<void> {
    const last = [...this.#started].map(
      (child) => new Promise<void>((resolve) => child.on("close", () => resolve())),
    );
    for (const child of this.#started) child.kill("SIGKILL");
    await Promise.all(last);
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Waits for a condition; failing names what did not come. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: () => string = () => "the condition",
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${what()}`);
    await pause(20);
  }
}
