import { EXIT } from "../exit-code.ts";
import { counted } from "../fact-text.ts";
import { type Register, examples } from "./command.ts";
import { duration, wholeNumber } from "./option-values.ts";

interface PruneOptions {
  readonly olderThan: number;
  readonly limit: number;
  readonly dryRun?: boolean;
}

export const pruneCommand: Register = (program, perform) => {
  program
    .command("prune")
    .summary("remove old trees that have ended")
    .description(
      "Remove whole trees that ended long ago, with everything that is known of them, and leave a tombstone for each. What " +
        "is open, undelivered or asked, and the trees of a thread of which anything lives or is younger, are never " +
        "touched. Dead workers and their events of that age go, too.",
    )
    .requiredOption("--older-than <time>", "how long ago they must have ended", duration("--older-than"))
    .option(
      "--limit <n>",
      "trees at most; the trees of one thread go together",
      wholeNumber("--limit"),
      Number.MAX_SAFE_INTEGER,
    )
    .option("--dry-run", "only tell what would go")
    .addHelpText(
      "after",
      examples(
        ["errand prune --older-than 30d --dry-run", "what would go"],
        ["errand prune --older-than 30d", "once a day, from a timer"],
        ["errand prune --older-than 12h --limit 1000", "a little at a time"],
      ),
    )
    .action(async (options: PruneOptions, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out } = session;
          const { olderThan, limit, dryRun = false } = options;
          const endedBefore = errand.store.now() - olderThan;
          const pruned = await errand.store.operations.prune(errand.tenant, { endedBefore, limit, dryRun });
          if (out.json) out.document({ ...pruned, endedBefore, dryRun });
          else {
            const what = `${counted(pruned.trees, "tree")} of ${counted(pruned.runs, "run")}`;
            out.line(`${dryRun ? "Would remove" : "Removed"} ${what}, ended before ${isoText(endedBefore)}.`);
          }
          return EXIT.done;
        }),
      ),
    );
};

function isoText(at: number): string {
  return new Date(at).toISOString();
}
