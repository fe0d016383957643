import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline/promises";
import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-code.ts";
import { starterFiles } from "../starter-files.ts";
import { type Register, examples } from "./command.ts";

interface InitOptions {
  readonly yes?: boolean;
  readonly force?: boolean;
}

export const initCommand: Register = (program, perform) => {
  program
    .command("init")
    .summary("write a config and a first agent")
    .description(
      "Write errand.config.ts and a small working agent in this folder, and print the command that runs it. Asks first " +
        "on a terminal. Existing files are never overwritten without --force.",
    )
    .option("-y, --yes", "do not ask")
    .option("-f, --force", "overwrite existing files")
    .addHelpText(
      "after",
      examples(["errand init", "in a new folder"], ["errand init --yes", "without a question"]),
    )
    .action(async (options: InitOptions, command) =>
      perform(command, async (session) => {
        const { out, cwd } = session;
        const files = starterFiles();
        const present = files.filter((file) => existsSync(join(cwd, file.path))).map((file) => file.path);
        if (present.length > 0 && options.force !== true) {
          throw new CliError(
            "USAGE",
            EXIT.conflict,
            `${present.join(" and ")} ${present.length === 1 ? "is" : "are"} already here.`,
            "Nothing was written. Overwrite with --force, or use another folder.",
          );
        }
        const names = files.map((file) => file.path).join(" and ");
        if (
          options.yes !== true &&
          !out.json &&
          process.stdin.isTTY === true &&
          process.stderr.isTTY === true
        ) {
          const agreed = await confirm(`Write ${names} in ${cwd}? [Y/n] `);
          if (!agreed) {
            out.note("Nothing was written.");
            return EXIT.done;
          }
        }
        for (const { path, text } of files) {
          const file = join(cwd, path);
          await mkdir(dirname(file), { recursive: true });
          await writeFile(file, text);
          out.note(`wrote ${relative(cwd, file)}`);
        }
        const next = `errand run party --input '{"guests":["Ada","Grace"]}'`;
        if (out.json) out.document({ written: files.map((file) => file.path), next });
        else {
          out.note("Next:");
          out.line(next);
        }
        return EXIT.done;
      }),
    );
};

async function confirm(question: string): Promise<boolean> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return !/^\s*n/i.test(await reader.question(question));
  } finally {
    reader.close();
  }
}
