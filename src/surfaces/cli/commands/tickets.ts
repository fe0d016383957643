import type { OpenTicket } from "../../../runtime/host/resume-ticket.ts";
import { EXIT } from "../exit-code.ts";
import { withId } from "../known-id.ts";
import { durationText, plain, wrap } from "../measure.ts";
import type { Style } from "../style.ts";
import { answerCommand } from "../ticket-answer.ts";
import { commandLines } from "../tree-lines.ts";
import { type Register, examples } from "./command.ts";

export const ticketsCommand: Register = (program, perform) => {
  program
    .command("tickets")
    .summary("list what waits for a person")
    .description("List open tickets: what is asked, by which run, and the command that answers.")
    .option("-r, --run <run>", "only those of this run's tree")
    .option("-a, --all", "also those that are answered or closed")
    .addHelpText(
      "after",
      examples(
        ["errand tickets", "everything that is open"],
        ["errand tickets --run run_4f…", "of one tree"],
        ["errand tickets --json | jq '.tickets[].ticketId'", "for a script"],
      ),
    )
    .action(async (options: { readonly run?: string; readonly all?: boolean }, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out, scope } = session;
          const { run, all } = options;
          const root =
            run === undefined
              ? undefined
              : await withId(errand, run, ["run"], async () => (await errand.status(run)).rootRunId);
          const tickets = await errand.tickets({
            ...(root === undefined ? {} : { rootRunId: root }),
            ...(all === undefined ? {} : { all }),
          });
          if (out.json) {
            out.document({ tickets });
            return EXIT.done;
          }
          if (tickets.length === 0) out.note(all === true ? "No tickets." : "Nothing waits for a person.");
          const now = errand.store.now();
          out.lines(tickets.flatMap((ticket) => ticketText(ticket, out.style, scope, now)));
          return EXIT.done;
        }),
      ),
    );
};

/** A ticket in three lines: what it is, what is asked, and how to answer. */
export function ticketText(
  ticket: OpenTicket,
  style: Style,
  scope: readonly string[],
  now: number,
): readonly string[] {
  const { color } = style;
  const left = ticket.deadlineAt === null ? "" : `, ${deadlineText(ticket.deadlineAt - now)}`;
  const sign =
    ticket.status === "open" ? color.yellow(`${style.unicode ? "▲" : "!"} open`) : color.dim(ticket.status);
  const age = `opened ${durationText(now - ticket.openedAt)} ago${ticket.status === "open" ? left : ""}`;
  return [
    `${sign} ${color.bold(ticket.kind)} ${ticket.ticketId}`,
    ...wrap(plain(ticket.prompt), style.width - 2).map((line) => `  ${line}`),
    `  ${color.dim(`${ticket.runId} · ${age}`)}`,
    ...(ticket.status === "open"
      ? commandLines(answerCommand(ticket, scope), style.width - 2).map((line) => `  ${line}`)
      : []),
  ];
}

function deadlineText(leftMs: number): string {
  return leftMs > 0 ? `${durationText(leftMs)} left to answer` : "too late to answer";
}
