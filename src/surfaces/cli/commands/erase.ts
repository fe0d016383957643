import type { Errand } from "../../library/errand.ts";
import { CliError, usageError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { counted } from "../fact-text.ts";
import type { Session } from "../session.ts";
import { type Register, examples } from "./command.ts";

interface EraseOptions {
  readonly user?: string;
  readonly tenantData?: boolean;
  readonly yes?: boolean;
}

export const eraseCommand: Register = (program, perform) => {
  program
    .command("erase")
    .summary("erase a person's data, or a tenant's")
    .description(
      "With --user: erase the content of every ended tree that was started on that person's behalf. Ids, times and digests " +
        "stay, so that `errand verify` still accepts the log; what still lives is left alone and counted. With " +
        "--tenant-data: remove everything of the tenant; refused while one of its runs is running. Neither can be undone, " +
        "and neither reaches backups.",
    )
    .option("--user <name>", "whose trees, as named when they were started")
    .option("--tenant-data", "everything of the tenant that --tenant or the config names")
    .option("--yes", "really do it")
    .addHelpText(
      "after",
      examples(
        ["errand erase --user ada@example.org --yes", "one person"],
        ["errand erase --tenant-data --tenant acme --yes", "one tenant"],
      ),
    )
    .action(async (options: EraseOptions, command) =>
      perform(command, async (session) => {
        const { user, tenantData = false, yes = false } = options;
        if ((user === undefined) === !tenantData) {
          throw usageError("What is to be erased is not clear.", "Name either --user or --tenant-data.");
        }
        if (!yes) throw usageError("Erasing cannot be undone.", "Say --yes to do it.");
        return session.use({}, (errand) =>
          user === undefined ? eraseTenant(session, errand) : eraseUser(session, errand, user),
        );
      }),
    );
};

async function eraseUser(session: Session, errand: Errand, user: string): Promise<ExitCode> {
  const { out } = session;
  const { erased, stillLive } = await errand.store.operations.eraseUser(errand.tenant, user);
  if (out.json) {
    out.document({ user, erased, stillLive });
    return EXIT.done;
  }
  out.line(`Erased the content of ${counted(erased, "run")} of ${user}.`);
  if (stillLive > 0) {
    out.warn(
      `${counted(stillLive, "run")} were left alone: their tree or thread still lives. Erase again later.`,
    );
  }
  return EXIT.done;
}

async function eraseTenant(session: Session, errand: Errand): Promise<ExitCode> {
  const { out } = session;
  const outcome = await errand.store.operations.eraseTenant(errand.tenant);
  if (outcome.kind === "refused") {
    throw new CliError(
      "REFUSED",
      EXIT.conflict,
      `${counted(outcome.running, "run")} of tenant ${errand.tenant} are running; nothing was erased.`,
      "Stop the tenant's workers, or set its limit to 0 and wait (`errand limits set --total 0`).",
    );
  }
  if (out.json) out.document({ tenant: errand.tenant, runs: outcome.runs });
  else out.line(`Erased everything of tenant ${errand.tenant}: ${counted(outcome.runs, "run")}.`);
  return EXIT.done;
}
