import { ErrandError } from "../../domain/errand-error.ts";
import type { Decision } from "../../domain/decision.ts";
import type { DelegationId, RunId } from "../../domain/id.ts";
import type { LaneFact, RunFact } from "../../domain/run/run-fact.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import { decideBatch, type BatchCommand } from "../../domain/tool-batch/tool-batch.ts";
import type { LoadedRun } from "../run/loaded-run.ts";

/** The facts of the next commit, already applied to the loaded Run; thrown away with it if the commit does not stand. */
export class Staging {
  readonly run: LoadedRun;
  facts: LaneFact[] = [];
  children: RunHeader[] = [];
  waitsRead: { readonly delegationId: DelegationId; readonly digest: string }[] = [];
  /** True while everything staged could be staged again from what is committed: envelopes, decisions, time. */
  durable = true;

  constructor(run: LoadedRun) {
    this.run = run;
  }

  get empty(): boolean {
    return this.facts.length === 0 && this.waitsRead.length === 0;
  }

  add(...facts: readonly LaneFact[]): void {
    for (const fact of facts) {
      this.facts.push(fact);
      this.run.apply(fact, null);
    }
  }

  /** True if this envelope is dealt with by what is staged; the store still shows it as unread. */
  reads(delegationId: DelegationId, digest: string): boolean {
    return (
      this.waitsRead.some((one) => one.delegationId === delegationId && one.digest === digest) ||
      this.facts.some(
        (fact) =>
          (fact.type === "child_result_consumed" || fact.type === "child_result_discarded") &&
          fact.delegationId === delegationId &&
          fact.digest === digest,
      )
    );
  }

  addChild(header: RunHeader): void {
    this.children.push(header);
  }

  /** Stages what the batch's rules make of a command; a refusal here is a defect of the runtime, not of a user. */
  batch(command: BatchCommand): void {
    const { batch, header } = this.run.state;
    if (batch === null) throw defect(header.runId, `there is no batch for ${command.type}`);
    this.add(...accepted(header.runId, decideBatch(batch, command)));
  }

  /** What was staged, for the commit; the next stage starts empty. */
  take(): Pick<Staging, "facts" | "children" | "waitsRead"> {
    const taken = { facts: this.facts, children: this.children, waitsRead: this.waitsRead };
    this.facts = [];
    this.children = [];
    this.waitsRead = [];
    this.durable = true;
    return taken;
  }
}

/** The facts of a decision that the runtime knows to be allowed. */
export function accepted<Fact extends RunFact>(runId: RunId, decision: Decision<Fact>): readonly Fact[] {
  if (!decision.ok) throw defect(runId, `${decision.code}: ${decision.why}`);
  return decision.facts;
}

function defect(runId: RunId, what: string): ErrandError {
  return new ErrandError(
    "STALE_CLAIM",
    `The runtime and the rules disagree about ${runId}: ${what}.`,
    "The run is read again from its log; report this if it repeats.",
  );
}
