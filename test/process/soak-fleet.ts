import { parseArgs } from "node:util";
import { type FleetSoakOptions, type FleetSoakReport, fleetSoak } from "./fleet-soak.ts";

/** `npm run soak:fleet -- [--trees N] [--workers N] [--seed S]` */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      trees: { type: "string", default: "2000" },
      workers: { type: "string", default: "4" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const [trees, workers, seed] = [Number(values.trees), Number(values.workers), Number(values.seed)];
  if (
    ![trees, workers].every((number) => Number.isInteger(number) && number > 0) ||
    !Number.isInteger(seed)
  ) {
    process.stderr.write("Give --trees and --workers whole numbers from 1 on, and --seed a whole number.\n");
    return 2;
  }
  const began = performance.now();
  process.stdout.write(`${trees} trees on ${workers} workers and one PostgreSQL (seed ${seed})\n`);
  const report = await fleetSoak({ trees, workers, seed, onProgress: (so) => showProgress(so, trees) });
  if (process.stdout.isTTY) process.stdout.write("\n");
  process.stdout.write(`${summaryOf(report)}\n${Math.round((performance.now() - began) / 1_000)} s\n`);
  if (report.problems.length === 0) return 0;
  process.stdout.write(
    `\n${report.problems.join("\n")}\nAgain: npm run soak:fleet -- --trees ${trees} --workers ${workers} --seed ${seed}\n`,
  );
  return 1;
}

let shown = -1;

const showProgress = (
  { finished, disturbances }: Parameters<NonNullable<FleetSoakOptions["onProgress"]>>[0],
  wanted: number,
): void => {
  const line = `${finished}/${wanted} trees finished; ${listed(disturbances)}`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}`);
  else if (Math.floor((finished / wanted) * 20) > shown) {
    shown = Math.floor((finished / wanted) * 20);
    process.stdout.write(`${line}\n`);
  }
};

function listed(disturbances: FleetSoakReport["disturbances"]): string {
  return Object.entries(disturbances)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function summaryOf(report: FleetSoakReport): string {
  const { figures, problems } = report;
  return [
    `server          PostgreSQL ${report.server}, fsync on`,
    `standby         ${report.promoted ? "synchronous, promoted halfway, the primary killed for good" : "none: there is no pg_basebackup"}`,
    `disturbances    ${listed(report.disturbances)}`,
    `leases lost     ${report.lost} by workers that went on; ${report.aborted} tool calls were stopped for it`,
    `trees           ${figures.trees} ended, of ${figures.runs} runs and ${figures.logEntries} log entries`,
    `effects         ${figures.effects} by ${figures.requests} requests; ${figures.payments} of those that may never be repeated`,
    `unknown calls   ${figures.unknown}`,
    `errand verify   looked at the whole database`,
    problems.length === 0 ? "All as it must be." : `${problems.length} problems:`,
  ].join("\n");
}
