import type { RunId } from "../../../domain/id.ts";
import type { WorkerRow } from "../../../runtime/ports/store.ts";
import type { Errand } from "../../library/errand.ts";
import { EXIT } from "../exit-code.ts";
import { durationText } from "../measure.ts";
import { tableLines } from "../table.ts";
import { type Register, examples } from "./command.ts";

interface WorkerLine extends Omit<WorkerRow, "tenant"> {
  readonly heartbeatAgeMs: number;
  readonly holds: readonly RunId[];
}

/** More than any fleet runs at a time. */
const MOST_RUNNING = 100_000;

export const workersCommand: Register = (program, perform) => {
  program
    .command("workers")
    .summary("list workers, and what each holds")
    .description(
      "List the worker incarnations that the store knows: the live ones first, with the age of their heartbeat, the runs " +
        "that they hold and the agents that they carry. A restart is a new incarnation; dead ones stay until `errand prune`.",
    )
    .option("--live", "only those that are not dead")
    .addHelpText(
      "after",
      examples(
        ["errand workers", "all of them"],
        ["errand workers --live --json | jq '.workers[].holds'", "for a script"],
      ),
    )
    .action(async (options: { readonly live?: boolean }, command) =>
      perform(command, async (session) =>
        session.use({}, async (errand) => {
          const { out } = session;
          const workers = (await workerLines(errand)).filter((one) => options.live !== true || !one.dead);
          if (out.json) {
            out.document({ workers });
            return EXIT.done;
          }
          if (workers.length === 0) {
            out.note("No worker is known; start one with `errand worker`.");
            return EXIT.done;
          }
          const { color } = out.style;
          const columns = [
            { title: "WORKER", text: (one: WorkerLine) => one.name },
            {
              title: "STATE",
              text: (one: WorkerLine) => (one.dead ? "dead" : "live"),
              paint: (text: string, one: WorkerLine) => (one.dead ? color.dim(text) : color.green(text)),
            },
            {
              title: "HEARTBEAT",
              align: "right" as const,
              text: (one: WorkerLine) => `${durationText(one.heartbeatAgeMs)} ago`,
            },
            { title: "HOLDS", align: "right" as const, text: (one: WorkerLine) => String(one.holds.length) },
            { title: "INCARNATION", text: (one: WorkerLine) => one.incarnation },
            { title: "PROCESS", text: (one: WorkerLine) => `${one.host}/${one.pid}` },
            {
              title: "AGENTS",
              text: (one: WorkerLine) =>
                one.publications.map((ref) => ref.slice(0, ref.indexOf("@"))).join(", "),
              paint: (text: string) => color.dim(text),
            },
          ];
          out.lines(tableLines(out.style, columns, workers));
          return EXIT.done;
        }),
      ),
    );
};

async function workerLines(errand: Errand): Promise<readonly WorkerLine[]> {
  const rows = await errand.workers();
  const running = await errand.store.listRuns(errand.tenant, { states: ["running"], limit: MOST_RUNNING });
  const now = errand.store.now();
  const lines = rows.map(({ tenant: _, ...row }) => ({
    ...row,
    heartbeatAgeMs: Math.max(0, now - row.heartbeatAt),
    holds: running.filter((run) => run.claimedBy === row.incarnation).map((run) => run.runId),
  }));
  return lines.sort(
    (left, right) => Number(left.dead) - Number(right.dead) || right.heartbeatAt - left.heartbeatAt,
  );
}
