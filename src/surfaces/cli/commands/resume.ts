import { Option } from "commander";
import type { Json } from "../../../rules/json.ts";
import { usageError } from "../cli-error.ts";
import { EXIT } from "../exit-code.ts";
import { idKind, withId } from "../known-id.ts";
import { errandCommand } from "../shell-command.ts";
import { type Register, examples } from "./command.ts";
import { jsonText } from "./option-values.ts";

interface ResumeOptions {
  readonly answer?: string;
  readonly approve?: boolean;
  readonly reject?: string | boolean;
  readonly decisionId?: string;
  readonly by?: string;
}

export const resumeCommand: Register = (program, perform) => {
  program
    .command("resume")
    .summary("answer a ticket")
    .description(
      "Answer a ticket, or the one open ticket below a run. The answer is checked before anything is written, and the " +
        "first answer stands.",
    )
    .argument("<ticket|run>", "id of a ticket, or of a run with one open ticket below it")
    .addOption(
      new Option("--answer <json>", "the answer, in the shape that was asked for").conflicts([
        "approve",
        "reject",
      ]),
    )
    .addOption(new Option("--approve", "approve the call that is asked about").conflicts("reject"))
    .option("--reject [reason]", "reject it")
    .option("--decision-id <id>", "names this decision, so that sending it again is the same decision")
    .option("--by <name>", "who answers; kept with the answer")
    .addHelpText(
      "after",
      examples(
        ["errand resume tkt_9c… --approve", "approve a tool call"],
        ["errand resume tkt_9c… --reject 'not on a Friday'", "reject it"],
        [`errand resume tkt_9c… --answer '"blue"'`, "answer a question"],
        ["errand resume run_4f… --answer true", "the one ticket of a tree"],
      ),
    )
    .action(async (target: string, options: ResumeOptions, command) =>
      perform(command, async (session) => {
        const { answer, isApproval } = answerOf(options);
        return session.use({}, (errand) =>
          withId(errand, target, ["ticket", "run"], async () => {
            const { out, scope } = session;
            const { decisionId, by } = options;
            const done = await errand.resume(target, answer, {
              ...(decisionId === undefined ? {} : { decisionId }),
              ...(by === undefined ? {} : { by }),
              ...(isApproval ? { kind: "approval" as const } : {}),
            });
            const ticketId = idKind(target) === "ticket" ? target : null;
            if (out.json) {
              out.document({ ...done, ticketId });
              return EXIT.done;
            }
            out.line(
              `${ticketId ?? `The ticket of ${target}`} ${done.repeated ? "was answered so before" : "is answered"}`,
            );
            const alive = (await errand.workers()).some((worker) => !worker.dead);
            out.note(
              alive
                ? `${done.runId} goes on.`
                : `${done.runId} goes on with a worker; none is alive: \`${errandCommand(["worker"], scope)}\`.`,
            );
            return EXIT.done;
          }),
        );
      }),
    );
};

function answerOf(options: ResumeOptions): { readonly answer: Json; readonly isApproval: boolean } {
  const { answer, approve, reject } = options;
  if (answer !== undefined) return { answer: jsonText(answer, "--answer"), isApproval: false };
  if (approve === true) return { answer: { approved: true }, isApproval: true };
  if (reject !== undefined) {
    const refused = { approved: false };
    return {
      answer: typeof reject === "string" ? { ...refused, reason: reject } : refused,
      isApproval: true,
    };
  }
  throw usageError("There is no answer.", "Give --answer <json>, --approve, or --reject [reason].");
}
