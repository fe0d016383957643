import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-code.ts";
import { withId } from "../known-id.ts";
import { RunFeed } from "../run-feed.ts";
import { type Register, examples } from "./command.ts";
import { wholeNumber } from "./option-values.ts";

interface LogsOptions {
  readonly follow?: boolean;
  readonly after: number;
}

export const logsCommand: Register = (program, perform) => {
  program
    .command("logs")
    .summary("print what was committed")
    .description("Print the committed facts of a run and everything below it, oldest first, one a line.")
    .argument("<run>", "id of a run")
    .option("-f, --follow", "go on until the run ends")
    .option("--after <seq>", "only facts after this number of an earlier line", wholeNumber("--after", 0), 0)
    .addHelpText(
      "after",
      examples(
        ["errand logs run_4f…", "everything so far"],
        ["errand logs run_4f… -f --after 1200", "go on where an earlier look ended"],
        ["errand logs run_4f… --json | jq .fact.type", "an object a line"],
      ),
    )
    .action(async (runId: string, options: LogsOptions, command) =>
      perform(command, async (session) =>
        session.use({}, (errand) =>
          withId(errand, runId, ["run"], async () => {
            const { out } = session;
            const follow = options.follow === true;
            const signal = follow ? session.interrupt() : undefined;
            const feed = new RunFeed();
            await errand.status(runId);
            try {
              for await (const event of errand.stream(runId, { live: false, follow, signal })) {
                feed.read(event);
                if (event.kind !== "fact" || event.seq <= options.after) continue;
                if (out.json) out.item(event);
                else out.line(feed.line(event, out.style));
              }
            } catch (error) {
              if (signal?.aborted !== true) throw error;
              throw new CliError(
                "INTERRUPTED",
                EXIT.interrupted,
                "Stopped following.",
                "The run itself goes on.",
              );
            }
            return EXIT.done;
          }),
        ),
      ),
    );
};
