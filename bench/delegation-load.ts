import { createHash } from "node:crypto";
import {
  parseDelegationId,
  parseIncarnationId,
  parseOperationId,
  parsePublicationRef,
  parseRunId,
  parseTenantId,
  parseThreadId,
  type RunId,
} from "../src/domain/id.ts";
import type { Commit, LaneNext, Receipt, Store } from "../src/runtime/ports/store.ts";

const tenant = parseTenantId("default");
const publication = parsePublicationRef("agent@0123456789abcdef");
const carries = new Set<string>([publication]);
const incarnation = parseIncarnationId("inc_benchmark0");
const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const FACTS = JSON.stringify([
  {
    type: "step",
    step: 1,
    calls: [{ index: 0, tool: "agent_run", input: { goal: "Answer the question." } }],
  },
  { type: "usage", inputTokens: 0, outputTokens: 0 },
]);
const SUMMARY = JSON.stringify({ attempt: 1, usage: { input: 0, output: 0 }, wait: null, end: null });

/** Trivial delegations shaped as the runtime's: three commits, with the claims that ride in them. */
export class Delegations {
  readonly #store: Store;
  #made = 0;

  private constructor(store: Store) {
    this.#store = store;
  }

  static async on(store: Store): Promise<Delegations> {
    const worker = {
      incarnation,
      name: "bench",
      host: "bench",
      pid: process.pid,
      publications: [publication],
    };
    await store.registerWorker(tenant, worker);
    return new Delegations(store);
  }

  /** Makes `total` delegations, `parents` at a time, ten to a parent. */
  async run(total: number, parents: number): Promise<void> {
    let left = total;
    const parent = async (): Promise<void> => {
      while (left > 0) {
        const count = Math.min(10, left);
        left -= count;
        await this.#parent(count);
      }
    };
    await Promise.all(Array.from({ length: parents }, parent));
  }

  async #parent(count: number): Promise<void> {
    const name = hash(`bench-${this.#made++}`);
    const runId = parseRunId(`run_${name.slice(0, 24)}`);
    await this.#commit(runId, 0, {
      create: [this.#newRun(runId, name, null)],
      claim: { incarnation, carries, parent: false },
    });
    const parent = { epoch: 1, version: 0, signalSeq: 0 };
    for (let step = 1; step <= count; step++) await this.#delegate(runId, parent, step);
    await this.#commit(runId, count * 2 + 2, {
      lane: this.#lane(runId, parent.epoch, parent.version, { kind: "end", endKind: "completed" }),
    });
  }

  async #delegate(
    parentId: RunId,
    parent: { epoch: number; version: number; signalSeq: number },
    step: number,
  ): Promise<void> {
    const name = hash(`${parentId}-${step}`);
    const childId = parseRunId(`run_${name.slice(0, 24)}`);
    const delegationId = parseDelegationId(`del_${name.slice(0, 32)}`);
    const claim = { incarnation, carries, parent: true };
    const park: LaneNext = {
      kind: "park",
      state: "waiting",
      dueInMs: null,
      signalSeqSeen: parent.signalSeq,
    };
    await this.#commit(parentId, step * 2, {
      lane: this.#lane(parentId, parent.epoch, parent.version, park),
      create: [this.#newRun(childId, name, parentId)],
      openDelegations: [
        {
          delegationId,
          rootRunId: parentId,
          parentRunId: parentId,
          childRunId: childId,
          step,
          index: 0,
          target: "agent",
          contractVersion: 1,
          contractDigest: name,
        },
      ],
      claim,
    });
    const ended = await this.#commit(childId, 1, {
      lane: this.#lane(childId, 1, 0, { kind: "end", endKind: "completed" }),
      deliver: [
        {
          delegationId,
          parentRunId: parentId,
          childRunId: childId,
          kind: "result",
          digest: name,
          body: FACTS,
        },
      ],
      claim,
    });
    const woken = ended.claimed[0];
    if (woken === undefined) throw new Error("The child's end did not claim its parent.");
    parent.epoch = woken.epoch;
    parent.signalSeq = woken.signalSeq;
    const consumed = await this.#commit(parentId, step * 2 + 1, {
      lane: this.#lane(parentId, parent.epoch, woken.version, { kind: "hold" }),
      closeDelegations: [delegationId],
      readInbox: [{ delegationId, digest: name, status: "consumed" }],
    });
    parent.version = consumed.version ?? 0;
  }

  #lane(runId: RunId, epoch: number, version: number, next: LaneNext): NonNullable<Commit["lane"]> {
    return {
      runId,
      incarnation,
      epoch,
      version,
      controlSeqSeen: 0,
      next,
      body: FACTS,
      summary: SUMMARY,
      lifecycle: next.kind === "end",
    };
  }

  #newRun(runId: RunId, name: string, parentRunId: RunId | null): Commit["create"][number] {
    return {
      runId,
      rootRunId: parentRunId ?? runId,
      parentRunId,
      threadId: parseThreadId(`thr_${name.slice(0, 24)}`),
      delegationId: null,
      agent: "agent",
      publication,
      depth: parentRunId === null ? 0 : 1,
      priority: 0,
      delayMs: 0,
      user: null,
      summary: SUMMARY,
      body: FACTS,
      claim: true,
    };
  }

  async #commit(
    runId: RunId,
    step: number,
    parts: Partial<Omit<Commit, "tenant" | "rootRunId" | "operationId" | "digest">>,
  ): Promise<Receipt> {
    const outcome = await this.#store.commit({
      tenant,
      rootRunId: runId,
      operationId: parseOperationId(`${runId}/${step}`),
      digest: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
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
      ...parts,
    });
    if (outcome.kind !== "committed")
      throw new Error(`The commit was not accepted: ${JSON.stringify(outcome)}`);
    return outcome.receipt;
  }
}
