import { canonicalJson } from "../../rules/canonical-json.ts";
import type { Json } from "../../rules/json.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type { Envelope } from "../../domain/child-results/envelope.ts";
import { usedOrNull } from "../../domain/budget/usage.ts";
import type { DelegationId, IncarnationId, OperationId, TenantId } from "../../domain/id.ts";
import { isControl } from "../../domain/run/is-control.ts";
import type { LaneFact, RunFact, SignalFact } from "../../domain/run/run-fact.ts";
import type { RunHeader } from "../../domain/run/run-header.ts";
import { type RunState, createdRun } from "../../domain/run/run.ts";
import { waitState } from "../../domain/run/wait.ts";
import type { Commit, Delivery, LaneNext, NewRun } from "../ports/store.ts";
import type { LoadedRun } from "../run/loaded-run.ts";
import { encodeSummary, totalUsage } from "../run/run-summary.ts";

/*
 * From facts to rows. Every row of a commit is derived here from the facts that the commit writes, so that
 * `verify` can derive it again from the log (L2).
 */

const LIFECYCLE = new Set<RunFact["type"]>([
  "run_created",
  "attempt_started",
  "attempt_failed",
  "ticket_opened",
  "ticket_consumed",
  "ticket_closed",
  "cancel_requested",
  "pause_requested",
  "continue_requested",
  "run_ended",
  "delegation_opened",
  "delegation_closed",
]);

/** True if the log entry of these facts belongs into the lifecycle feed. */
export function isLifecycle(facts: readonly RunFact[]): boolean {
  return facts.some((fact) => LIFECYCLE.has(fact.type));
}

/** A fact list as the log keeps it: the order of its keys is the order in which the code above builds them. */
export function encodeFacts(facts: readonly RunFact[]): string {
  return JSON.stringify(facts);
}

export interface LaneCommit {
  readonly tenant: TenantId;
  readonly run: LoadedRun;
  readonly facts: readonly LaneFact[];
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  /** Number of the driver that writes, in its worker. */
  readonly driver: number;
  /** Signals seen: if another has come, a park is undone, and an end that leaves children behind is refused. */
  readonly signalSeqSeen: number;
  /** Set when the facts authorize something new (L23). */
  readonly controlSeqSeen: number | null;
  /** Children that the facts open, in the order of their `delegation_opened` facts. */
  readonly children: readonly RunHeader[];
  /** How many of the children the incarnation could run at once. */
  readonly claimChildren: number;
  readonly claimParent: boolean;
  readonly carries: ReadonlySet<string>;
  /** Envelopes of waiting children that the facts answer to. */
  readonly waitsRead: readonly { readonly delegationId: DelegationId; readonly digest: string }[];
}

/** The commit of a lane's holder. `run` already has the facts applied; its version is still the one before. */
export function encodeLaneCommit(input: LaneCommit): Commit {
  const { run, facts, tenant } = input;
  const { header } = run.state;
  const body = encodeFacts(facts);
  const summary = encodeSummary(run.state);
  const deliver = envelopes(run.state, facts);
  const create = input.children.map((child, index) => newRun(child, 0, index < input.claimChildren));
  let digest = body;
  for (const child of create) digest += `\n${child.body}`;
  // Of the driver, too: its own repeat is the same commit, and that of another driver of the same claim is a stale one.
  const operationId = `${header.runId}:${run.version + 1}:${input.epoch}.${input.driver}` as OperationId;
  return {
    tenant,
    rootRunId: header.rootRunId,
    operationId,
    digest: sha256Hex(digest),
    lane: {
      runId: header.runId,
      incarnation: input.incarnation,
      epoch: input.epoch,
      version: run.version,
      controlSeqSeen: input.controlSeqSeen,
      next: laneNext(run, facts, input.signalSeqSeen),
      body,
      summary: summary === run.summary ? null : summary,
      lifecycle: isLifecycle(facts),
    },
    signals: [],
    create,
    ...relationRows(header, facts),
    intentsDelivered: [],
    deliver,
    readInbox: [
      ...inboxRows(facts),
      ...input.waitsRead.map((one) => ({ ...one, status: "consumed" as const })),
    ],
    ...ticketRows(header, facts),
    decideTicket: null,
    claim:
      input.claimParent || input.claimChildren > 0
        ? { incarnation: input.incarnation, carries: input.carries, parent: input.claimParent }
        : null,
  };
}

/** The first row of a Run, root or child. */
export function newRun(header: RunHeader, delayMs: number, claim: boolean): NewRun {
  const fact = { type: "run_created", header, delayMs } as const;
  return {
    runId: header.runId,
    rootRunId: header.rootRunId,
    parentRunId: header.origin?.parentRunId ?? null,
    threadId: header.threadId,
    delegationId: header.origin?.delegationId ?? null,
    agent: header.agent,
    publication: header.publication,
    depth: header.depth,
    priority: header.priority,
    delayMs,
    user: header.user,
    summary: encodeSummary(createdRun(fact)),
    body: encodeFacts([fact]),
    claim,
  };
}

/** A commit by somebody who does not hold the lane: it appends a fact and raises the Run's signal. */
export function encodeSignalCommit(input: {
  readonly tenant: TenantId;
  readonly header: Pick<RunHeader, "runId" | "rootRunId">;
  readonly operationId: OperationId;
  readonly fact: SignalFact;
  readonly ifEnded: "refuse" | "record";
  readonly intentsDelivered?: readonly DelegationId[];
  readonly decideTicket?: Commit["decideTicket"];
}): Commit {
  const body = encodeFacts([input.fact]);
  const { type } = input.fact;
  return {
    ...emptyCommit(input.tenant, input.header.rootRunId, input.operationId, sha256Hex(body)),
    signals: [
      {
        runId: input.header.runId,
        body,
        lifecycle: LIFECYCLE.has(type),
        control: isControl(input.fact),
        ifEnded: input.ifEnded,
      },
    ],
    intentsDelivered: input.intentsDelivered ?? [],
    decideTicket: input.decideTicket ?? null,
  };
}

/** A host's start of a root Run. */
export function encodeStartCommit(
  tenant: TenantId,
  header: RunHeader,
  operationId: OperationId,
  delayMs: number,
): Commit {
  // Canonical, so that the same start is the same content whatever order its keys come in.
  const fact = { type: "run_created", header, delayMs } as const;
  const run = { ...newRun(header, delayMs, false), body: canonicalJson([fact] as unknown as Json) };
  return { ...emptyCommit(tenant, header.rootRunId, operationId, sha256Hex(run.body)), create: [run] };
}

function emptyCommit(
  tenant: TenantId,
  rootRunId: RunHeader["rootRunId"],
  operationId: OperationId,
  digest: string,
): Commit {
  return {
    tenant,
    rootRunId,
    operationId,
    digest,
    lane: null,
    signals: [],
    create: [],
    openDelegations: [],
    closeDelegations: [],
    cancelDelegations: [],
    intentsDelivered: [],
    deliver: [],
    readInbox: [],
    openTickets: [],
    closeTickets: [],
    decideTicket: null,
    claim: null,
  };
}

function laneNext(run: LoadedRun, facts: readonly LaneFact[], signalSeqSeen: number): LaneNext {
  const last = facts.at(-1);
  if (last?.type === "run_ended") {
    const end = { kind: "end", endKind: last.end.kind } as const;
    // A result that came unseen has to be discarded and charged in the last commit, so that commit is decided again.
    return run.state.delegations.open.length === 0 ? end : { ...end, signalSeqSeen };
  }
  if (last?.type !== "parked") return { kind: "hold" };
  const state = waitState(last.wait);
  return { kind: "park", state, dueInMs: last.dueInMs, signalSeqSeen };
}

/**
 * What a Run's facts tell its parent: its end, its wait, its going on. At most one, the last word.
 * @param state of the Run, with the facts applied
 */
export function envelopes(state: RunState, facts: readonly LaneFact[]): Delivery[] {
  const { origin, runId } = state.header;
  if (origin === null) return [];
  const common = { delegationId: origin.delegationId, childRunId: runId };
  let envelope: Envelope | undefined;
  for (const fact of facts) {
    switch (fact.type) {
      case "ticket_opened":
        envelope = { kind: "wait", ...common, ticketId: fact.ticketId, ticketKind: fact.kind };
        break;
      case "parked":
        if (fact.wait.on === "ticket") {
          envelope = {
            kind: "wait",
            ...common,
            ticketId: fact.wait.ticketId,
            ticketKind: fact.wait.ticketKind,
          };
        }
        break;
      case "ticket_consumed":
      case "ticket_closed":
        envelope = { kind: "resumed", ...common, ticketId: fact.ticketId };
        break;
      case "call_resumed":
        envelope ??= { kind: "resumed", ...common, ticketId: null };
        break;
      case "run_ended":
        envelope = {
          kind: "result",
          ...common,
          contractVersion: origin.contract.version,
          end: fact.end,
          usage: usedOrNull(totalUsage(state)),
          treeRunsUsed: fact.treeRunsUsed,
        };
        break;
      default:
        break;
    }
  }
  if (envelope === undefined) return [];
  const body = JSON.stringify(envelope);
  return [{ ...common, parentRunId: origin.parentRunId, kind: envelope.kind, digest: sha256Hex(body), body }];
}

function relationRows(
  header: RunHeader,
  facts: readonly LaneFact[],
): Pick<Commit, "openDelegations" | "closeDelegations" | "cancelDelegations"> {
  const openDelegations: Commit["openDelegations"][number][] = [];
  const closeDelegations: DelegationId[] = [];
  const cancelDelegations: DelegationId[] = [];
  for (const fact of facts) {
    if (fact.type === "delegation_opened") {
      openDelegations.push({
        delegationId: fact.delegationId,
        rootRunId: header.rootRunId,
        parentRunId: header.runId,
        childRunId: fact.childRunId,
        step: fact.step,
        index: fact.index,
        target: fact.target,
        contractVersion: fact.contractVersion,
        contractDigest: fact.contractDigest,
      });
    } else if (fact.type === "delegation_closed") closeDelegations.push(fact.delegationId);
    else if (fact.type === "delegation_cancel_requested") cancelDelegations.push(fact.delegationId);
  }
  return { openDelegations, closeDelegations, cancelDelegations };
}

function inboxRows(facts: readonly LaneFact[]): Commit["readInbox"][number][] {
  const rows: Commit["readInbox"][number][] = [];
  for (const fact of facts) {
    if (fact.type === "child_result_consumed") {
      rows.push({ delegationId: fact.delegationId, digest: fact.digest, status: "consumed" });
    } else if (fact.type === "child_result_discarded") {
      rows.push({ delegationId: fact.delegationId, digest: fact.digest, status: "discarded" });
    }
  }
  return rows;
}

function ticketRows(
  header: RunHeader,
  facts: readonly LaneFact[],
): Pick<Commit, "openTickets" | "closeTickets"> {
  const openTickets: Commit["openTickets"][number][] = [];
  const closeTickets: Commit["closeTickets"][number][] = [];
  for (const fact of facts) {
    if (fact.type === "ticket_opened") {
      openTickets.push({
        ticketId: fact.ticketId,
        runId: header.runId,
        kind: fact.kind,
        deadlineInMs: fact.deadlineInMs,
        body: canonicalJson(fact as unknown as Json),
      });
    } else if (fact.type === "ticket_closed")
      closeTickets.push({ ticketId: fact.ticketId, reason: fact.reason });
  }
  return { openTickets, closeTickets };
}
