import type { Command } from "commander";
import type { ExitCode } from "../exit-code.ts";
import type { Session } from "../session.ts";

/** Runs a command's work with a session made from its options, shows its error, and sets the exit status. */
export type Perform = (command: Command, work: (session: Session) => Promise<ExitCode>) => Promise<void>;

/** Adds one command to the program. */
export type Register = (program: Command, perform: Perform) => void;

/** Examples below a command's help. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\nExamples:\n${lines.map(([command, what]) => `  $ ${command.padEnd(width)}  ${what}`).join("\n")}`;
}
