import type { DelegationId, PublicationRef } from "../../../domain/id.ts";
import type { Json } from "../../../rules/json.ts";
import { ErrandError } from "../../../domain/errand-error.ts";
import { contractJson } from "../../../domain/contract/contract.ts";
import { openTicket } from "../../../runtime/host/resume-ticket.ts";
import { type RunDetail, runDetail } from "../../../runtime/view/run-detail.ts";
import type { Errand } from "../../library/errand.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type IdKind, withId } from "../known-id.ts";
import { runJson } from "../run-status.ts";
import type { Session } from "../session.ts";
import { delegationSheet, publicationSheet, runSheet } from "../sheets.ts";
import { type Register, examples } from "./command.ts";
import { ticketText } from "./tickets.ts";

const KINDS: readonly IdKind[] = ["run", "delegation", "ticket", "publication"];

export const showCommand: Register = (program, perform) => {
  program
    .command("show")
    .summary("show all that is known of one thing")
    .description(
      "Show a run (its state and why, input, attempts, calls, effects, tickets, usage, contract, end), a delegation, " +
        "a ticket, or a publication of an agent.",
    )
    .argument("<id>", "id of a run, delegation, ticket or publication, or an agent's name")
    .addHelpText(
      "after",
      examples(
        ["errand show run_4f…", "a run"],
        ["errand show tkt_9c…", "a ticket, with what is asked"],
        ["errand show party", "the newest publication of an agent"],
        ["errand show run_4f… --json | jq .calls", "for a script"],
      ),
    )
    .action(async (id: string, _options: unknown, command) =>
      perform(command, async (session) => session.use({}, (errand) => show(session, errand, id))),
    );
};

async function show(session: Session, errand: Errand, id: string): Promise<ExitCode> {
  const named = await errand.store.headPublication(errand.tenant, id);
  if (named !== null) return showPublication(session, errand, named.ref);
  return withId(errand, id, KINDS, async (kind) => {
    switch (kind) {
      case "run":
        return showRun(session, errand, id);
      case "delegation":
        return showDelegation(session, errand, id as DelegationId);
      case "ticket":
        return showTicket(session, errand, id);
      case "publication":
        return showPublication(session, errand, id as PublicationRef);
      default:
        return kind satisfies never;
    }
  });
}

async function showRun(session: Session, errand: Errand, id: string): Promise<ExitCode> {
  const { out, scope } = session;
  const status = await errand.status(id);
  const detail = runDetail(await errand.log(id));
  const effects = await errand.effects(id);
  const tickets = await errand.tickets({ runId: id, all: true });
  const tree = await errand.tree(id);
  if (out.json) {
    const contract = contractOf(detail);
    const { totalUsage } = tree;
    out.document({
      kind: "run",
      ...runJson({ ...status, totalUsage }),
      ...detail,
      contract,
      effects,
      tickets,
    });
    return EXIT.done;
  }
  out.lines(runSheet({ status, detail, effects, tickets, tree, now: errand.store.now() }, out.style, scope));
  return EXIT.done;
}

async function showDelegation(session: Session, errand: Errand, id: DelegationId): Promise<ExitCode> {
  const { out } = session;
  const row = await errand.store.getDelegation(errand.tenant, id);
  if (row === null) throw absent("delegation", id, "`errand tree` and `errand show <run>` list delegations.");
  const child = await errand.status(row.childRunId).catch((error: unknown) => {
    if (ErrandError.is(error) && error.code === "NOT_FOUND") return null;
    throw error;
  });
  const detail = child === null ? null : runDetail(await errand.log(row.childRunId));
  if (out.json) {
    const { tenant: _, ...relation } = row;
    const contract = contractOf(detail);
    out.document({
      kind: "delegation",
      ...relation,
      contract,
      child: child === null ? null : runJson(child),
    });
  } else out.lines(delegationSheet(row, child, detail, out.style, errand.store.now()));
  return EXIT.done;
}

async function showTicket(session: Session, errand: Errand, id: string): Promise<ExitCode> {
  const { out, scope } = session;
  const row = await errand.store.getTicket(errand.tenant, id as never);
  if (row === null) throw absent("ticket", id, "`errand tickets --all` lists tickets.");
  const ticket = openTicket(row);
  if (out.json) {
    const { decisionId, closeReason } = row;
    const { kind: ticketKind, ...rest } = ticket;
    out.document({ kind: "ticket", ticketKind, ...rest, decisionId, closeReason });
    return EXIT.done;
  }
  out.lines([
    ...ticketText(ticket, out.style, scope, errand.store.now()),
    `  ${out.style.color.dim("answer schema")} ${JSON.stringify(ticket.schema)}`,
    ...(row.decisionId === null ? [] : [`  ${out.style.color.dim("decided by")} ${row.decisionId}`]),
    ...(row.closeReason === null ? [] : [`  ${out.style.color.dim("closed")} ${row.closeReason}`]),
  ]);
  return EXIT.done;
}

async function showPublication(session: Session, errand: Errand, ref: PublicationRef): Promise<ExitCode> {
  const { out } = session;
  const row = await errand.store.getPublication(errand.tenant, ref);
  if (row === null) throw absent("publication", ref, "`errand agents` lists publications.");
  const publication = await errand.resolve(ref);
  const carriers = (await errand.workers()).filter((one) => !one.dead && one.publications.includes(ref));
  const workers = carriers.map((one) => one.name);
  if (out.json) {
    const { kind: agentKind, ...rest } = publication;
    out.document({ kind: "publication", agentKind, ...rest, publishedAt: row.publishedAt, workers });
  } else out.lines(publicationSheet(publication, row.publishedAt, workers, out.style));
  return EXIT.done;
}

function contractOf(detail: RunDetail | null): Json {
  const contract = detail?.contract ?? null;
  return contract === null ? null : contractJson(contract);
}

function absent(what: string, id: string, fix: string): ErrandError {
  return new ErrandError("NOT_FOUND", `There is no ${what} ${id}.`, fix);
}
