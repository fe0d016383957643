import { ErrandError } from "../../domain/errand-error.ts";
import type { LaneFact } from "../../domain/run/run-fact.ts";
import { encodeLaneCommit } from "../commit/encode-commit.ts";
import type { Commit, ClaimedRun, Receipt } from "../ports/store.ts";
import { LoadedRun } from "../run/loaded-run.ts";
import type { DriverHost } from "./driver-host.ts";
import { LostClaim } from "./lost-claim.ts";
import type { Staging } from "./staging.ts";

/** A commit that stands, or one that a control forbade: then nothing was written and memory is stale. */
export type Written =
  | { readonly stands: true; readonly receipt: Receipt; readonly facts: readonly LaneFact[] }
  | { readonly stands: false };

/** Writes what a driver staged, under its claim, and passes on what the commit brought about. */
export class LaneWriter {
  readonly #host: DriverHost;
  readonly #claim: ClaimedRun;
  readonly #interrupt: () => AbortSignal;
  /** Signals and controls seen; a park and an authorization are refused when others have come (L4, L23). */
  signalSeq: number;
  controlSeq: number;

  constructor(host: DriverHost, claim: ClaimedRun, interrupt: () => AbortSignal) {
    this.#host = host;
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
    const leaves = last?.type === "parked" || last?.type === "run_ended";
    const commit = encodeLaneCommit({
      tenant: host.tenant,
      run,
      facts,
      incarnation: host.incarnation,
      epoch: this.#claim.epoch,
      signalSeqSeen: this.signalSeq,
      controlSeqSeen: authorizes ? this.controlSeq : null,
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
        if (outcome.reason === "control") return { stands: false };
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
    this.#passOn(commit, receipt, staging, children, facts);
    return { stands: true, receipt, facts };
  }

  /** Claims that the commit granted start here; cancel intents that it recorded leave at once. */
  #passOn(
    commit: Commit,
    receipt: Receipt,
    staging: Staging,
    children: Staging["children"],
    facts: readonly LaneFact[],
  ): void {
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
    if (receipt.conflicts.length > 0) {
      const { runId } = staging.run.state.header;
      host.telemetry.emit({
        type: "run_warning",
        tenant: host.tenant,
        runId,
        message: `another result already stands for ${receipt.conflicts.join(", ")}`,
      });
    }
    if (facts.some((fact) => fact.type === "delegation_cancel_requested")) host.intentsRecorded();
  }
}
