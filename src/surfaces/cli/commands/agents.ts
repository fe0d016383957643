import type { PublicationRow, WorkerRow } from "../../../runtime/ports/store.ts";
import { decodePublication } from "../../../runtime/catalog/publication.ts";
import { EXIT } from "../exit-code.ts";
import { durationText } from "../measure.ts";
import { tableLines } from "../table.ts";
import { type Register, examples } from "./command.ts";

interface AgentLine {
  readonly ref: string;
  readonly name: string;
  readonly kind: string;
  readonly description: string;
  readonly publishedAt: number;
  /** The newest of its name: what `errand run <name>` means elsewhere. */
  readonly newest: boolean;
  /** Names of live workers that carry it. */
  readonly workers: readonly string[];
}

export const agentsCommand: Register = (program, perform) => {
  program
    .command("agents")
    .summary("list published agents")
    .description("List the agents that were published to the store, and how many live workers carry each.")
    .option("-a, --all", "also older publications of a name")
    .addHelpText(
      "after",
      examples(
        ["errand agents", "the newest of each name"],
        ["errand agents --all --json", "everything, for a script"],
      ),
    )
    .action(async (options: { readonly all?: boolean }, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out } = session;
          const rows = await errand.store.listPublications(errand.tenant);
          const workers = (await errand.workers()).filter((worker) => !worker.dead);
          const agents = agentLines(rows, workers).filter((agent) => options.all === true || agent.newest);
          if (out.json) {
            out.document({ agents });
            return EXIT.done;
          }
          if (agents.length === 0) {
            out.note(
              "No agents are published; `errand run` and `errand worker` publish those of the config.",
            );
            return EXIT.done;
          }
          const now = errand.store.now();
          const { color } = out.style;
          out.lines(
            tableLines(
              out.style,
              [
                {
                  title: "AGENT",
                  text: (one) => one.ref,
                  paint: (text, one) => (one.newest ? color.bold(text) : text),
                },
                { title: "KIND", text: (one) => one.kind },
                {
                  title: "PUBLISHED",
                  align: "right",
                  text: (one) => `${durationText(now - one.publishedAt)} ago`,
                },
                {
                  title: "WORKERS",
                  align: "right",
                  text: (one) => String(one.workers.length),
                  paint: (text, one) => (one.workers.length === 0 ? color.yellow(text) : color.green(text)),
                },
                { title: "DESCRIPTION", text: (one) => one.description, paint: (text) => color.dim(text) },
              ],
              agents,
            ),
          );
          return EXIT.done;
        }),
      ),
    );
};

/** By name, the newest of a name first. */
function agentLines(rows: readonly PublicationRow[], workers: readonly WorkerRow[]): readonly AgentLine[] {
  const sorted = [...rows].sort(
    (left, right) => left.name.localeCompare(right.name) || right.publishedAt - left.publishedAt,
  );
  return sorted.map((row, at) => {
    const { kind, description } = decodePublication(row.body);
    return {
      ref: row.ref,
      name: row.name,
      kind,
      description,
      publishedAt: row.publishedAt,
      newest: sorted[at - 1]?.name !== row.name,
      workers: workers.filter((one) => one.publications.includes(row.ref)).map((one) => one.name),
    };
  });
}
