import { parseArgs } from "node:util";
import { type SoakReport, killSoak } from "./kill-soak.ts";

/** `npm run soak:kill -- [--kills N] [--seed S]` */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: "string", default: "200" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const [kills, seed] = [Number(values.kills), Number(values.seed)];
  if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed) || seed < 0) {
    process.stderr.write("Give --kills a whole number from 1 on, and --seed one from 0 on.\n");
    return 2;
  }
  const began = performance.now();
  process.stdout.write(`Killing the release review ${kills} times at random moments (seed ${seed})\n`);
  const report = await killSoak({ kills, seed, onProgress: (so) => showProgress(so, kills) });
  if (process.stdout.isTTY) process.stdout.write("\n");
  process.stdout.write(`${summaryOf(report)}\n${Math.round((performance.now() - began) / 1_000)} s\n`);
  if (report.problems.length === 0) return 0;
  process.stdout.write(
    `\n${report.problems.join("\n")}\nAgain: npm run soak:kill -- --kills ${kills} --seed ${seed}\n`,
  );
  return 1;
}

let shown = -1;

function showProgress({ kills, jobs }: SoakReport, wanted: number): void {
  const line = `${kills}/${wanted} kills, ${jobs} jobs finished`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}`);
  else if (Math.floor(kills / 20) > shown) {
    shown = Math.floor(kills / 20);
    process.stdout.write(`${line}\n`);
  }
}

function summaryOf(report: SoakReport): string {
  const { idempotentEffects, idempotentRequests, neverEffects, unknownCalls } = report;
  return [
    `kills                 ${report.kills}, over ${report.jobs} jobs with ${report.runs} runs; an unkilled job takes ${Math.round(report.unkilledMs)} ms`,
    `children              one for each delegating call`,
    `idempotent effects    ${idempotentEffects}, once for each key (${idempotentRequests - idempotentEffects} repeated requests told apart by their key)`,
    `never-repeat effects  ${neverEffects}, none twice; ${unknownCalls} calls Indeterminate`,
    `histories             ${report.historiesCompared} of ${report.runs} compared byte for byte with an unkilled job`,
    `errand verify         looked at the whole file`,
    report.problems.length === 0 ? "All as it must be." : `${report.problems.length} problems:`,
  ].join("\n");
}
