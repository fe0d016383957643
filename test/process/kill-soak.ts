import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { type OutsideEffect, startEffectCounter } from "./effect-counter.ts";
import { type Evidence, type KillFigures, figuresOf, findProblems } from "./kill-verdict.ts";
import type { WorkerOrder } from "./kill-worker.ts";
import { type RunRecord, listRunIds, recordTree, verifyFile } from "./tree-record.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const EXAMPLE = fileURLToPath(new URL("../../examples/01-release-review", import.meta.url));

/** Short, so that a killed worker is soon taken over; long enough for a busy machine to renew it. */
const LEASE_MS = 600;
/** A run that hangs is a finding, not something to wait for. */
const PATIENCE_MS = 60_000;

export interface SoakOptions {
  readonly kills: number;
  readonly seed: number;
  readonly onProgress?: (so: SoakReport) => void;
}

export interface SoakReport extends KillFigures {
  readonly kills: number;
  /** Main jobs that were killed at least once, and then finished. */
  readonly jobs: number;
  /** Duration of the job that nobody killed. */
  readonly unkilledMs: number;
  readonly problems: readonly string[];
}

/** Kills the main job's process at random moments, `kills` times over as many jobs as it takes, and compares what is left. */
export async function killSoak({ kills, seed, onProgress }: SoakOptions): Promise<SoakReport> {
  const folder = await mkdtemp(join(tmpdir(), "errand-kill-"));
  const random = new SeededRandom(seed);
  const counter = await startEffectCounter();
  const order = {
    before: join(EXAMPLE, "before"),
    after: join(EXAMPLE, "after"),
    out: join(folder, "out"),
    counter: counter.url,
    paceMs: 1,
    leaseMs: LEASE_MS,
  };
  try {
    const reference = await runUnkilled({ ...order, store: join(folder, "reference.db"), key: "reference" });
    let report: SoakReport = { ...NOTHING, unkilledMs: reference.tookMs };
    while (report.kills < kills && report.problems.length === 0) {
      await rm(order.out, { recursive: true, force: true });
      const job = { ...order, store: join(folder, "errand.db"), key: `job-${report.jobs + 1}` };
      const killed = await killUntilDone(job, kills - report.kills, reference.tookMs, random, (count) =>
        onProgress?.({ ...report, kills: report.kills + count }),
      );
      const records = await recordTree(job.store, killed.rootRunId);
      const evidence: Evidence = {
        reference: reference.records,
        referenceReview: reference.review,
        records,
        review: await readReview(order.out),
        outside: effectsOf(await counter.effects(), records),
        seen: killed.seen,
      };
      report = {
        ...addFigures(report, figuresOf(evidence)),
        unkilledMs: report.unkilledMs,
        kills: report.kills + killed.kills,
        jobs: report.jobs + 1,
        problems: findProblems(evidence).map(
          (problem) => `job ${report.jobs + 1} (seed ${seed}): ${problem}`,
        ),
      };
      onProgress?.(report);
    }
    return { ...report, problems: [...report.problems, ...(await verifyFile(join(folder, "errand.db")))] };
  } finally {
    await counter.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function addFigures(one: KillFigures, other: KillFigures): KillFigures {
  return {
    runs: one.runs + other.runs,
    idempotentEffects: one.idempotentEffects + other.idempotentEffects,
    idempotentRequests: one.idempotentRequests + other.idempotentRequests,
    neverEffects: one.neverEffects + other.neverEffects,
    unknownCalls: one.unknownCalls + other.unknownCalls,
    historiesCompared: one.historiesCompared + other.historiesCompared,
  };
}

const NOTHING: SoakReport = {
  kills: 0,
  jobs: 0,
  runs: 0,
  idempotentEffects: 0,
  idempotentRequests: 0,
  neverEffects: 0,
  unknownCalls: 0,
  historiesCompared: 0,
  unkilledMs: 0,
  problems: [],
};

interface Unkilled {
  readonly tookMs: number;
  readonly records: readonly RunRecord[];
  readonly review: string;
}

async function runUnkilled(order: WorkerOrder): Promise<Unkilled> {
  const worker = startWorker(order);
  const rootRunId = await worker.ready;
  const began = performance.now();
  await worker.ended;
  const tookMs = performance.now() - began;
  await worker.gone;
  const records = await recordTree(order.store, rootRunId);
  return { tookMs, records, review: await readReview(order.out) };
}

interface Killed {
  readonly kills: number;
  readonly rootRunId: string;
  /** Runs that were on record at the moment of some kill. */
  readonly seen: ReadonlySet<string>;
}

async function killUntilDone(
  order: WorkerOrder,
  mostKills: number,
  jobMs: number,
  random: SeededRandom,
  onKill: (kills: number) => void,
): Promise<Killed> {
  const seen = new Set<string>();
  // Some jobs are left to get on between kills, others are killed again and again before they get far.
  const patience = 0.3 + 0.7 * random.next();
  for (let kills = 0; ; ) {
    const worker = startWorker(order);
    const rootRunId = await worker.ready;
    // The first worker begins at once; a later one first waits for its predecessor's lease to end.
    const reachMs = (kills === 0 ? 0 : LEASE_MS) + patience * jobMs;
    if (kills < mostKills) {
      const stop = new AbortController();
      const killAt = pause(random.next() * reachMs, "kill" as const, { signal: stop.signal }).catch(
        () => "late" as const,
      );
      const first = await Promise.race([killAt, worker.ended.then(() => "ended" as const)]);
      stop.abort();
      if (first === "kill") {
        worker.process.kill("SIGKILL");
        await worker.gone;
        kills += 1;
        for (const runId of await listRunIds(order.store, rootRunId)) seen.add(runId);
        onKill(kills);
        continue;
      }
    }
    await worker.ended;
    await worker.gone;
    return { kills, rootRunId, seen };
  }
}

interface WorkerProcess {
  readonly process: ChildProcess;
  /** The root Run's id, once it is started or found. */
  readonly ready: Promise<string>;
  /** How the root Run ended. Never settles for a worker that was killed before that. */
  readonly ended: Promise<string>;
  readonly gone: Promise<void>;
}

function startWorker(order: WorkerOrder): WorkerProcess {
  const child = spawn(
    process.execPath,
    [join(HERE, "launch.mjs"), join(HERE, "kill-worker.ts"), JSON.stringify(order)],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const words = new Map<string, (rest: string) => void>();
  const failures: ((error: Error) => void)[] = [];
  const word = (name: string): Promise<string> =>
    new Promise((resolve, reject) => {
      words.set(name, resolve);
      failures.push(reject);
    });
  const [ready, ended] = [word("ready"), word("ended")];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const [name = "", rest = ""] = line.split(" ");
    words.get(name)?.(rest);
  });
  const fail = (text: string): void => {
    for (const reject of failures) reject(new Error(`${text}\n${errors}`));
  };
  const patience = setTimeout(() => {
    fail(`The worker of ${order.key} did not end within ${PATIENCE_MS} ms.`);
    child.kill("SIGKILL");
  }, PATIENCE_MS);
  const gone = once(child, "close").then(([code, signal]) => {
    clearTimeout(patience);
    if (signal !== "SIGKILL" && code !== 0)
      fail(`The worker of ${order.key} ended with ${String(code ?? signal)}.`);
  });
  // Whoever needs them awaits them; a worker that is killed on purpose leaves them open.
  for (const promise of [ready, ended, gone]) promise.catch(() => undefined);
  return { process: child, ready, ended, gone };
}

function effectsOf(all: readonly OutsideEffect[], records: readonly RunRecord[]): readonly OutsideEffect[] {
  return all.filter(({ key }) => records.some(({ runId }) => key.startsWith(`${runId}:`)));
}

function readReview(out: string): Promise<string> {
  return readFile(join(out, "review.md"), "utf8");
}
