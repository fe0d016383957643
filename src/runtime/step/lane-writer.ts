import { ErrandError } from "../../domain/errand-error.ts";
import type { OperationId } from "../../domain/id.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import { encodeLaneCommit, encodeSignalCommit } from "../commit/encode-commit.ts";
import type { Commit, ClaimedRun, Receipt } from "../ports/store.ts";
import { LoadedRun } from "../run/loaded-run.ts";
import type { DriverHost } from "./driver-host.ts";
import { LostClaim } from "./lost-claim.ts";
import type { Staging } from "./staging.ts";

/** A commit that stands, or one that a control or a delivery forbade: nothing was written, and memory is stale. */
export type Written =
  | { readonly stands: true; readonly receipt: Receipt; readonly facts: readonly LaneFact[] }
  | { readonly stands: false };

/** Writes what a driver staged, under its claim, and passes on what the commit brought about. */
export class LaneWriter {
  readonly #host: DriverHost;
  readonly #claim: ClaimedRun;
  readonly #driver: number;
  readonly #interrupt: () => AbortSignal;
  /** Signals and controls seen; a park and an authorization are refused when others have come (L4, L23). */
  signalSeq: number;
  controlSeq: number;

  /** @param driver number of the driver in its worker: a claim that is heard of twice must not take the other's commits for its own */
  constructor(host: DriverHost, claim: ClaimedRun, driver: number, interrupt: () => AbortSignal) {
    this.#host = host;
    this.#driver = driver;
    this.#claim = claim;
    this.#interrupt = interrupt;
    this.signalSeq = claim.signalSeq;
    this.controlSeq = claim.controlSeq;
  }

  /** @param authorizes the facts allow something new to begin */
  async write(staging: Staging, authorizes: boolean): Promise<Written> {
    const host = this.#host;
    const { run } = staging;
    const { facts, children, waitsRead } = staging.take();
    const last = facts.at(-1);
    // A decision that comes at the last moment beats the deadline, as a control does.
    const expires = facts.some((fact) => fact.type === "ticket_closed" && fact.reason === "deadline");
    const leaves = last?.type === "parked" || last?.type === "run_ended";
    const commit = encodeLaneCommit({
      tenant: host.tenant,
      run,
      facts,
      incarnation: host.incarnation,
      epoch: this.#claim.epoch,
      driver: this.#driver,
      signalSeqSeen: this.signalSeq,
      controlSeqSeen: authorizes || expires ? this.controlSeq : null,
      children,
      claimChildren: host.draining ? 0 : Math.min(children.length, host.freeSlots() + (leaves ? 1 : 0)),
      claimParent: last?.type === "run_ended" && !host.draining,
      carries: host.carries,
      waitsRead,
    });
    const outcome = await host.committer.commit(commit, this.#interrupt);
    switch (outcome.kind) {
      case "committed":
      case "duplicate":
        break;
      case "stale":
        if (outcome.reason === "control" || outcome.reason === "signal") return { stands: false };
        throw new LostClaim(`the store refused the commit: ${outcome.reason}`);
      case "conflict":
        throw new LostClaim(`another commit stands under ${commit.operationId}`);
      case "refused":
        throw new ErrandError(
          "STALE_CLAIM",
          `${run.state.header.runId} could not commit: ${outcome.reason}.`,
          "It is tried again.",
        );
      default:
        outcome satisfies never;
    }
    const { receipt } = outcome;
    run.version = receipt.version ?? run.version;
    run.summary = commit.lane?.summary ?? run.summary;
    run.timed(facts, receipt.at);
    this.#passOn(commit, receipt, children, facts);
    if (receipt.conflicts.length > 0) await this.#keepConflicts(commit, receipt);
    return { stands: true, receipt, facts };
  }

  /** Of two results that differ the first stands; that there was a second is kept on the parent for audit (L16). */
  async #keepConflicts(commit: Commit, receipt: Receipt): Promise<void> {
    const { tenant, telemetry, committer } = this.#host;
    const { runId } = this.#claim;
    const message = `another result already stands for ${receipt.conflicts.join(", ")}`;
    telemetry.emit({ type: "run_warning", tenant, runId, message });
    for (const { delegationId, parentRunId, digest } of commit.deliver) {
      if (!receipt.conflicts.includes(delegationId)) continue;
      const conflict = encodeSignalCommit({
        tenant,
        header: { runId: parentRunId, rootRunId: commit.rootRunId },
        operationId: `conflict:${delegationId}:${digest.slice(0, 32)}` as OperationId,
        fact: { type: "late_result", delegationId, digest, verdict: "conflict" },
        ifEnded: "record",
      });
      await committer.commit(conflict, this.#interrupt);
    }
  }

  /** Claims that the commit granted start here; cancel intents that it recorded leave at once. */
  #passOn(commit: Commit, receipt: Receipt, children: Staging["children"], facts: readonly LaneFact[]): void {
    const host = this.#host;
    for (const header of children) {
      if (!receipt.claimed.some((claim) => claim.runId === header.runId)) continue;
      const run = LoadedRun.created({ type: "run_created", header, delayMs: 0 });
      host.keepWarm(header.runId, { run, session: null, signalSeq: 0 });
    }
    if (receipt.claimed.length > 0) {
      const status = "unread" as const;
      const handed = commit.deliver.map((delivery) => ({ tenant: host.tenant, ...delivery, status }));
      host.adopt(receipt.claimed, handed);
    }
    if (facts.some((fact) => fact.type === "delegation_cancel_requested")) host.intentsRecorded();
  }
}
