import assert from "node:assert/strict";
import {
  type DelegationId,
  type IncarnationId,
  type OperationId,
  parseDelegationId,
  parseIncarnationId,
  parseOperationId,
  parsePublicationRef,
  parseRunId,
  parseTenantId,
  parseThreadId,
  parseTicketId,
  type PublicationRef,
  type RunId,
  type TenantId,
  type ThreadId,
  type TicketId,
} from "../../domain/id.ts";
import { canonicalJson } from "../../rules/canonical-json.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type {
  ClaimedRun,
  Commit,
  CommitOutcome,
  Delivery,
  LaneNext,
  LaneWrite,
  LogRow,
  NewRun,
  Receipt,
  RunRow,
  SignalWrite,
  Store,
} from "../../runtime/ports/store.ts";

/** A claim as its holder knows it. `version` follows the holder's own commits. */
export interface Held {
  readonly runId: RunId;
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  version: number;
}

type Draft = Partial<Omit<Commit, "tenant" | "digest" | "operationId">> & {
  readonly operationId?: OperationId;
  readonly digest?: string;
};

/** Ids from short names: the same name is the same id, in every case and tenant. */
export const id = {
  tenant: parseTenantId,
  run: (name: string): RunId => parseRunId(`run_${name.toLowerCase().padEnd(8, "x")}`),
  thread: (name: string): ThreadId => parseThreadId(`thr_${name.toLowerCase().padEnd(8, "x")}`),
  incarnation: (name: string): IncarnationId =>
    parseIncarnationId(`inc_${name.toLowerCase().padEnd(8, "x")}`),
  delegation: (name: string): DelegationId => parseDelegationId(`del_${sha256Hex(name).slice(0, 32)}`),
  ticket: (name: string): TicketId => parseTicketId(`tkt_${sha256Hex(name).slice(0, 32)}`),
  publication: (name: string): PublicationRef =>
    parsePublicationRef(`${name}@${sha256Hex(name).slice(0, 16)}`),
  operation: (name: string): OperationId => parseOperationId(name),
};

/** The publication of every Run that does not name another. */
export const PUBLICATION: PublicationRef = id.publication("writer");
export const CARRIES: ReadonlySet<string> = new Set([PUBLICATION]);

/** One store as a case sees it: one tenant, short names for ids, and commits with everything empty but what is given. */
export class World {
  readonly store: Store;
  readonly clock: { now(): number; advance(ms: number): void };
  readonly tenant: TenantId;
  readonly #counter: { operations: number };

  constructor(
    store: Store,
    clock: World["clock"],
    tenant: TenantId = parseTenantId("acme"),
    counter: { operations: number } = { operations: 0 },
  ) {
    this.store = store;
    this.clock = clock;
    this.tenant = tenant;
    this.#counter = counter;
  }

  /** The same through another connection. */
  on(store: Store): World {
    return new World(store, this.clock, this.tenant, this.#counter);
  }

  /** The same for another tenant of the same store. */
  as(tenant: string): World {
    return new World(this.store, this.clock, parseTenantId(tenant), this.#counter);
  }

  draft(parts: Draft): Commit {
    this.#counter.operations += 1;
    const content = {
      rootRunId: parts.rootRunId ?? parts.create?.[0]?.rootRunId ?? parts.lane?.runId ?? id.run("p"),
      lane: parts.lane ?? null,
      signals: parts.signals ?? [],
      create: parts.create ?? [],
      openDelegations: parts.openDelegations ?? [],
      closeDelegations: parts.closeDelegations ?? [],
      cancelDelegations: parts.cancelDelegations ?? [],
      intentsDelivered: parts.intentsDelivered ?? [],
      deliver: parts.deliver ?? [],
      readInbox: parts.readInbox ?? [],
      openTickets: parts.openTickets ?? [],
      closeTickets: parts.closeTickets ?? [],
      decideTicket: parts.decideTicket ?? null,
    };
    return {
      ...content,
      tenant: this.tenant,
      operationId: parts.operationId ?? id.operation(`op-${this.#counter.operations}`),
      digest: parts.digest ?? sha256Hex(JSON.stringify(content)),
      claim: parts.claim ?? null,
    };
  }

  commit(parts: Draft): Promise<CommitOutcome> {
    return this.store.commit(this.draft(parts));
  }

  /** Commits, and insists that it is committed. */
  async committed(parts: Draft): Promise<Receipt> {
    const outcome = await this.commit(parts);
    assert.equal(outcome.kind, "committed", canonicalJson({ ...outcome } as never));
    return (outcome as Extract<CommitOutcome, { readonly kind: "committed" }>).receipt;
  }

  newRun(name: string, parts: Partial<NewRun> = {}): NewRun {
    const runId = id.run(name);
    return {
      runId,
      rootRunId: runId,
      parentRunId: null,
      threadId: id.thread(name),
      delegationId: null,
      agent: "writer",
      publication: PUBLICATION,
      depth: 0,
      priority: 0,
      delayMs: 0,
      user: null,
      summary: "{}",
      body: `[{"type":"started","run":"${name}"}]`,
      claim: false,
      ...parts,
    };
  }

  /** A child of `parent`, in its tree. */
  newChild(name: string, parent: string, parts: Partial<NewRun> = {}): NewRun {
    return this.newRun(name, {
      rootRunId: id.run(parent),
      parentRunId: id.run(parent),
      delegationId: id.delegation(name),
      depth: 1,
      ...parts,
    });
  }

  create(...runs: readonly NewRun[]): Promise<Receipt> {
    return this.committed({ create: runs });
  }

  /** Registers an incarnation; a second time changes nothing. */
  async worker(name: string, host = "host-a"): Promise<IncarnationId> {
    const incarnation = id.incarnation(name);
    await this.store.registerWorker(this.tenant, {
      incarnation,
      name: `worker-${name}`,
      host,
      pid: 4711,
      publications: [PUBLICATION],
    });
    return incarnation;
  }

  claim(
    incarnation: IncarnationId,
    limit = 1,
    carries: ReadonlySet<string> = CARRIES,
  ): Promise<readonly ClaimedRun[]> {
    return this.store.claim(this.tenant, { incarnation, carries, limit });
  }

  /** Claims one Run, which must be `name`. */
  async take(name: string, worker = "w1"): Promise<Held> {
    const incarnation = await this.worker(worker);
    const claimed = await this.claim(incarnation);
    assert.deepEqual(
      claimed.map((run) => run.runId),
      [id.run(name)],
    );
    return this.held(claimed[0], incarnation);
  }

  /** Starts a Run and claims it at once. */
  async running(name: string, parts: Partial<NewRun> = {}, worker = "w1"): Promise<Held> {
    await this.create(this.newRun(name, parts));
    return this.take(name, worker);
  }

  held(run: ClaimedRun | undefined, incarnation: IncarnationId): Held {
    assert.ok(run !== undefined, "nothing was claimed");
    return { runId: run.runId, incarnation, epoch: run.epoch, version: run.version };
  }

  lane(held: Held, next: LaneNext = { kind: "hold" }, parts: Partial<LaneWrite> = {}): LaneWrite {
    return {
      runId: held.runId,
      incarnation: held.incarnation,
      epoch: held.epoch,
      version: held.version,
      controlSeqSeen: null,
      next,
      body: '[{"type":"step"}]',
      summary: null,
      lifecycle: false,
      ...parts,
    };
  }

  /** Commits as the holder of the lane, and insists; the claim's version moves along. */
  async step(held: Held, next: LaneNext = { kind: "hold" }, parts: Draft = {}): Promise<Receipt> {
    const receipt = await this.committed({ ...parts, lane: this.lane(held, next) });
    assert.equal(receipt.version, held.version + 1);
    held.version += 1;
    return receipt;
  }

  /** Starts, claims and parks a Run. */
  async parked(
    name: string,
    state: "waiting" | "awaiting" | "paused" = "waiting",
    dueInMs: number | null = null,
    parts: Partial<NewRun> = {},
  ): Promise<Held> {
    const held = await this.running(name, parts);
    const { signalSeq } = await this.row(name);
    await this.step(held, { kind: "park", state, dueInMs, signalSeqSeen: signalSeq });
    return held;
  }

  async ended(name: string, parts: Partial<NewRun> = {}): Promise<Held> {
    const held = await this.running(name, parts);
    await this.step(held, { kind: "end", endKind: "completed" });
    return held;
  }

  signal(name: string, parts: Partial<SignalWrite> = {}): SignalWrite {
    return {
      runId: id.run(name),
      body: '[{"type":"message"}]',
      lifecycle: false,
      control: false,
      ifEnded: "refuse",
      ...parts,
    };
  }

  delivery(child: string, parent: string, parts: Partial<Delivery> = {}): Delivery {
    return {
      delegationId: id.delegation(child),
      parentRunId: id.run(parent),
      childRunId: id.run(child),
      kind: "result",
      digest: `digest-of-${child}`,
      body: `{"result":"${child}"}`,
      ...parts,
    };
  }

  opening(child: string, parent: string): Commit["openDelegations"][number] {
    return {
      delegationId: id.delegation(child),
      rootRunId: id.run(parent),
      parentRunId: id.run(parent),
      childRunId: id.run(child),
      step: 1,
      index: 0,
      target: "writer",
      contractVersion: 1,
      contractDigest: `contract-of-${child}`,
    };
  }

  async row(name: string): Promise<RunRow> {
    const row = await this.store.getRun(this.tenant, id.run(name));
    assert.ok(row !== null, `there is no Run ${name}`);
    return row;
  }

  log(): Promise<readonly LogRow[]> {
    return this.store.readLog(this.tenant, { all: true }, 0, 100_000);
  }

  /** Everything that can be read of these Runs, to compare before and after. */
  async snapshot(...names: readonly string[]): Promise<unknown> {
    const { store, tenant } = this;
    const runs = await Promise.all(
      names.map(async (name) => [
        await store.getRun(tenant, id.run(name)),
        await store.listInbox(tenant, id.run(name)),
        await store.listDelegations(tenant, { parentRunId: id.run(name), limit: 1_000 }),
        await store.listTickets(tenant, { runId: id.run(name), limit: 1_000 }),
      ]),
    );
    return { runs, log: await this.log(), counts: await store.countRuns(tenant) };
  }
}
