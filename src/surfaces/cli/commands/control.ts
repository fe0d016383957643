import type { Command } from "commander";
import type { Errand } from "../../library/errand.ts";
import { EXIT } from "../exit-code.ts";
import { withId } from "../known-id.ts";
import { type Perform, type Register, examples } from "./command.ts";

interface ControlOptions {
  readonly reason?: string;
  readonly by?: string;
}

export const cancelCommand: Register = (program, perform) => {
  const command = program
    .command("cancel")
    .summary("ask a run and all below it to cancel")
    .description(
      "Ask a run and everything below it to cancel. Done means asked: each obeys at its next safe point, and " +
        "`errand tree` shows when it has.",
    )
    .option("--reason <text>", "why; kept in the log")
    .addHelpText("after", examples(["errand cancel run_4f… --reason 'wrong input'", "ask a tree to stop"]));
  control(command, perform, "cancel");
};

export const pauseCommand: Register = (program, perform) => {
  const command = program
    .command("pause")
    .summary("ask a run to pause at its next safe point")
    .description("Ask a run to pause at its next safe point. Runs below it are not paused.")
    .option("--reason <text>", "why; kept in the log")
    .addHelpText("after", examples(["errand pause run_4f…", "until `errand continue`"]));
  control(command, perform, "pause");
};

export const continueCommand: Register = (program, perform) => {
  const command = program
    .command("continue")
    .summary("let a paused run go on")
    .description("Let a paused run go on. To answer a question, use `errand resume`.")
    .addHelpText("after", examples(["errand continue run_4f…", "after `errand pause`"]));
  control(command, perform, "continue");
};

function control(command: Command, perform: Perform, name: "cancel" | "pause" | "continue"): void {
  command
    .argument("<run>", "id of a run")
    .option("--by <name>", "who asks; kept in the log")
    .action(async (runId: string, options: ControlOptions, self: Command) =>
      perform(self, async (session) =>
        session.use({}, (errand) =>
          withId(errand, runId, ["run"], async () => {
            const { out } = session;
            const done = await ask(errand, name, runId, options);
            if (out.json) out.document({ runId, ...done });
            else if (done.ended)
              out.line(`${runId} has already ended; the request is kept and changes nothing`);
            else out.line(`${runId} is asked to ${name}`);
            return EXIT.done;
          }),
        ),
      ),
    );
}

function ask(
  errand: Errand,
  name: "cancel" | "pause" | "continue",
  runId: string,
  options: ControlOptions,
): Promise<{ readonly recorded: boolean; readonly ended: boolean }> {
  const { reason, by } = options;
  const how = { ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) };
  switch (name) {
    case "cancel":
      return errand.cancel(runId, how);
    case "pause":
      return errand.pause(runId, how);
    case "continue":
      return errand.continue(runId, how);
    default:
      return name satisfies never;
  }
}
