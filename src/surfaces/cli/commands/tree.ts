import { CliError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { followTree, readFrame } from "../follow-tree.ts";
import type { Errand } from "../../library/errand.ts";
import { withId } from "../known-id.ts";
import { createLiveTree } from "../live-tree.ts";
import { isMilestone } from "../run-feed.ts";
import { treeJson } from "../run-status.ts";
import type { Session } from "../session.ts";
import { treeLines } from "../tree-lines.ts";
import { type Register, examples } from "./command.ts";

export const treeCommand: Register = (program, perform) => {
  program
    .command("tree")
    .summary("show the tree below a run")
    .description("Show a run and everything it has delegated: states, times, tokens, and what it waits for.")
    .argument("<run>", "id of a run")
    .option("-w, --watch", "keep drawing until the run ends")
    .addHelpText(
      "after",
      examples(
        ["errand tree run_4f…", "as it is now"],
        ["errand tree run_4f… -w", "live"],
        ["errand tree run_4f… -w --json", "a tree a line, at every change"],
      ),
    )
    .action(async (runId: string, options: { readonly watch?: boolean }, command) =>
      perform(command, async (session) =>
        session.use({}, (errand) =>
          withId(errand, runId, ["run"], () =>
            options.watch === true ? watch(session, errand, runId) : once(session, errand, runId),
          ),
        ),
      ),
    );
};

async function once(session: Session, errand: Errand, runId: string): Promise<ExitCode> {
  const { out, scope } = session;
  const frame = await readFrame(errand, runId, null);
  if (out.json) out.document({ tree: treeJson(frame.tree), tickets: frame.tickets });
  else out.lines(treeLines({ ...frame, style: out.style, scope, ids: true }));
  return EXIT.done;
}

async function watch(session: Session, errand: Errand, runId: string): Promise<ExitCode> {
  const { out, scope } = session;
  const signal = session.interrupt();
  await errand.status(runId);
  const live = process.stdout.isTTY === true && !out.json;
  const view = live ? await createLiveTree(process.stdout, out.style, scope) : null;
  let before = "";
  try {
    await followTree(errand, runId, {
      signal,
      onFrame: (frame) => {
        view?.draw(frame);
        if (!out.json) return;
        const text = JSON.stringify({ tree: treeJson(frame.tree), tickets: frame.tickets });
        if (text !== before) out.line(text);
        before = text;
      },
      onEvent: (event, feed) => {
        if (view === null && !out.json && event.kind === "fact" && isMilestone(event)) {
          out.line(feed.line(event, out.style));
        }
      },
    });
  } finally {
    view?.done();
  }
  if (signal.aborted) {
    throw new CliError("INTERRUPTED", EXIT.interrupted, "Stopped watching.", "The run itself goes on.");
  }
  return EXIT.done;
}
