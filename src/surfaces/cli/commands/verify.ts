import { ErrandError } from "../../../domain/errand-error.ts";
import type { Problem } from "../../../runtime/verify/problem.ts";
import type { Json } from "../../../rules/json.ts";
import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-code.ts";
import { counted, valueText } from "../fact-text.ts";
import { cut, plain } from "../measure.ts";
import type { Style } from "../style.ts";
import { type Register, examples } from "./command.ts";
import { wholeNumber } from "./option-values.ts";

export const verifyCommand: Register = (program, perform) => {
  program
    .command("verify")
    .summary("check the store against its own log")
    .description(
      "Rebuild every row of the tenant from its log alone and tell every difference, and whatever in the log itself is not " +
        "allowed. It only reads, and may look at a store on which workers are at work.",
    )
    .option("--limit <n>", "list at most so many problems", wholeNumber("--limit"), 1_000)
    .addHelpText(
      "after",
      examples(
        ["errand verify", "after a restore, or when something looks wrong"],
        ["errand verify --json | jq .problems", "for a script; the exit status is 7 when there are any"],
      ),
    )
    .action(async (options: { readonly limit: number }, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out } = session;
          const signal = session.interrupt();
          const report = await errand
            .verify({
              limit: options.limit,
              signal,
            })
            .catch((error: unknown) => {
              if (!signal.aborted) throw error;
              throw new CliError(
                "INTERRUPTED",
                EXIT.interrupted,
                "The check was left before its end.",
                "Run it again.",
              );
            });
          const { entries, runs, problems, truncated } = report;
          const more = truncated ? "+" : "";
          const looked = `${counted(runs, "run")}, ${counted(entries, "log entry", "log entries")}`;
          if (out.json) out.document(report);
          else {
            out.lines(problems.flatMap((problem) => problemLines(problem, out.style)));
            out.line(
              `${looked}: ${problems.length === 0 ? "no problem" : `${problems.length}${more} problems`}`,
            );
          }
          if (problems.length === 0) return EXIT.done;
          throw new ErrandError(
            "STORE_CORRUPT",
            `${counted(problems.length, "problem")}${more === "" ? "" : " or more"} in ${looked}.`,
            "Keep a copy of the database as it is, then restore a backup, or report what is listed above.",
          );
        }),
      ),
    );
};

function problemLines(problem: Problem, style: Style): readonly string[] {
  const { code, runId = "", what, expected, found } = problem;
  const { color } = style;
  return [
    `${color.red(code)} ${runId} ${plain(what)}`,
    `  ${color.dim("expected")} ${shown(expected)}`,
    `  ${color.dim("found")}    ${shown(found)}`,
  ].map((line) => cut(line, style.width));
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : valueText(value as Json, 2_000);
}
