import { ErrandError } from "../../../domain/errand-error.ts";
import { EXIT } from "../exit-code.ts";
import { counted } from "../fact-text.ts";
import { prepareFolder } from "../session.ts";
import { type Register, examples } from "./command.ts";

export const migrateCommand: Register = (program, perform) => {
  program
    .command("migrate")
    .summary("bring the database to this release's schema")
    .description(
      "Make the database if there is none, and bring it to this release's schema. Every command that opens it does the " +
        "same; this one does nothing else. A database of a newer release is refused and left as it is.",
    )
    .option("--status", "only tell which schema it has; change nothing")
    .addHelpText(
      "after",
      examples(["errand migrate --status", "what would be done"], ["errand migrate", "do it"]),
    )
    .action(async (options: { readonly status?: boolean }, command) =>
      perform(command, async (session) => {
        const { out } = session;
        const path = session.storePath(await session.project());
        if (path === null) {
          throw new ErrandError(
            "INVALID_CONFIG",
            "The config opens a store of its own, so there is no file to migrate.",
            "Name a SQLite database with --store, or migrate that store by its own means.",
          );
        }
        const { inspectDatabase } = await import("../../../stores/sqlite/inspect-database.ts");
        const before = await inspectDatabase(path);
        if (before.schema > before.known) {
          throw new ErrandError(
            "STORE_NEWER_SCHEMA",
            `${path} has schema ${before.schema}; this release knows ${before.known} and older.`,
            "Upgrade errand here to the release that wrote the file; nothing in it was changed.",
          );
        }
        if (options.status !== true) {
          await prepareFolder(path);
          const { createSqliteStore } = await import("../../../stores/sqlite/index.ts");
          await (await createSqliteStore(path)).close();
        }
        const after = options.status === true ? before : await inspectDatabase(path);
        const applied = after.schema - before.schema;
        if (out.json) {
          const { pending, schema, known, exists } = after;
          out.document({ path, exists, schema, known, pending, applied });
          return EXIT.done;
        }
        const state = after.exists ? `schema ${after.schema} of ${after.known}` : "not made yet";
        out.line(`${path}: ${state}${applied > 0 ? `, ${counted(applied, "migration")} applied` : ""}`);
        if (after.pending.length > 0) out.line(`to come: ${after.pending.join(", ")}`);
        else out.note("Up to date.");
        return EXIT.done;
      }),
    );
};
