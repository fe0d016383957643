import type { Failure } from "./cli-error.ts";
import { type Style, type Terminal, styleOf } from "./style.ts";

export interface OutputStream extends Terminal {
  write(text: string): unknown;
}

export interface OutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly color: boolean | undefined;
}

/**
 * Data goes to stdout and everything else to stderr. Under `--json` stdout carries JSON only and stderr only
 * `{"error": …}` and `{"warning": …}`, a line each.
 */
export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  /** How stdout is written to. */
  readonly style: Style;
  /** How stderr is written to. */
  readonly asideStyle: Style;
  readonly #options: OutputOptions;

  constructor(options: OutputOptions) {
    this.json = options.json;
    this.quiet = options.quiet;
    this.style = styleOf(options.stdout, options.env, options.color);
    this.asideStyle = styleOf(options.stderr, options.env, options.color);
    this.#options = options;
  }

  get stderr(): OutputStream {
    return this.#options.stderr;
  }

  get stdout(): OutputStream {
    return this.#options.stdout;
  }

  /** A line of data for people. */
  line(text: string): void {
    this.#options.stdout.write(`${text}\n`);
  }

  lines(texts: readonly string[]): void {
    if (texts.length > 0) this.line(texts.join("\n"));
  }

  /** The one document of a single answer: indented for people, on one line for programs. */
  document(value: unknown): void {
    this.line(JSON.stringify(value, null, this.#options.stdout.isTTY === true ? 2 : 0));
  }

  /** One object of a stream. */
  item(value: unknown): void {
    this.line(JSON.stringify(value));
  }

  /** What a person may like to know; silent under `--quiet` and `--json`. */
  note(text: string): void {
    if (!this.quiet && !this.json) this.#options.stderr.write(`${text}\n`);
  }

  /** What a person should know whatever else was asked. */
  warn(text: string): void {
    const { yellow } = this.asideStyle.color;
    this.#options.stderr.write(
      this.json ? `${JSON.stringify({ warning: { message: text } })}\n` : `${yellow("warning:")} ${text}\n`,
    );
  }

  fail(failure: Failure): void {
    const { code, message, fix } = failure;
    if (this.json) {
      this.#options.stderr.write(`${JSON.stringify({ error: { code, message, fix } })}\n`);
      return;
    }
    const { bold, red } = this.asideStyle.color;
    this.#options.stderr.write(`${red(bold(`[${code}]`))} ${message}\n${fix === "" ? "" : `${fix}\n`}`);
  }
}
