import { ErrandError } from "../../domain/errand-error.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-code.ts";

/** What the command line itself has to say; everything else raises an ErrandError. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code: "USAGE" | "REFUSED" | "WAITING" | "WAIT_TIMEOUT" | "INTERRUPTED" | "CONFIG_FAILED";
  readonly fix: string;
  readonly exitCode: ExitCode;

  constructor(code: CliError["code"], exitCode: ExitCode, what: string, fix: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.code = code;
    this.fix = fix;
    this.exitCode = exitCode;
  }
}

export function usageError(what: string, fix: string): CliError {
  return new CliError("USAGE", EXIT.usage, what, fix);
}

/** An error as it is shown: as text or as `{"error": …}`, and what the program exits with. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  readonly exitCode: ExitCode;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CliError) {
    const { code, message, fix, exitCode } = error;
    return { code, message, fix, exitCode };
  }
  if (ErrandError.is(error)) {
    const { code, fix } = error;
    return { code, message: withoutFrame(error), fix, exitCode: exitCodeOf(code) };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const fix = "This is a defect of errand or of an agent's code: please report it with the lines above.";
  return { code: "INTERNAL", message, fix, exitCode: EXIT.internal };
}

/** The sentence between `[CODE]` and the fix. */
function withoutFrame(error: ErrandError): string {
  const start = `[${error.code}] `;
  const { message } = error;
  const from = message.startsWith(start) ? start.length : 0;
  const to = message.endsWith(` ${error.fix}`) ? message.length - error.fix.length - 1 : message.length;
  return message.slice(from, to);
}
