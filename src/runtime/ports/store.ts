import type {
  DelegationId,
  IncarnationId,
  OperationId,
  PublicationRef,
  RunId,
  TenantId,
  ThreadId,
  TicketId,
} from "../../domain/id.ts";
import type { StoreOperations } from "./store-operations.ts";

/*
 * The store port: one durable write path, on encoded rows.
 *
 * S1 `commit` is one transaction and the only write that carries a fact (L1). Claims, heartbeats and publications are the others.
 * S2 A repeat of (operation id, digest) returns the first receipt; other content is a conflict. This is looked at before
 *    anything else (L5).
 * S3 A lane commit names run, version, epoch and incarnation, and is refused whole when one is stale (L4).
 * S4 Only a lane commit moves the version. Everybody else appends rows and raises `signalSeq`; that makes the Run `ready`
 *    only if it was waiting, awaiting or paused.
 * S5 Every call takes a tenant, every key starts with it, and "absent" and "not yours" answer alike (L31).
 * S6 A store never parses a body; it keeps the text it was given.
 */

/** Dispatch state of a Run row. `created` cannot be claimed yet: its time or its lane has not come. */
export type RowState = "created" | "ready" | "running" | "waiting" | "awaiting" | "paused" | "ended";

export interface RunRow {
  readonly tenant: TenantId;
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId | null;
  readonly threadId: ThreadId;
  readonly delegationId: DelegationId | null;
  readonly agent: string;
  readonly publication: PublicationRef;
  readonly depth: number;
  readonly priority: number;
  readonly state: RowState;
  /** True for the one live Run of the thread that may run; the others queue behind it in order of creation. */
  readonly lane: boolean;
  /** Thread version: counts the commits of the lane's holder. A queued Run gets it when the lane passes to it. */
  readonly version: number;
  readonly signalSeq: number;
  readonly controlSeq: number;
  /** Raised by every claim; fences every write made under an older one. */
  readonly epoch: number;
  /** Claims since the last lane commit: how often the work died without getting anywhere. */
  readonly fruitlessClaims: number;
  readonly claimedBy: IncarnationId | null;
  /** Earliest time (ms) at which the row may be claimed; null while running, ended, or parked without a timer. */
  readonly dueAt: number | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** Small JSON for lists and trees: attempt, usage, wait, end. Never a history. */
  readonly summary: string;
}

/** One entry of the log: the facts that one commit wrote onto one Run, as the JSON text of an array. */
export interface LogRow {
  /** Position in the store's log; opaque to users, increasing in commit order. */
  readonly seq: number;
  readonly tenant: TenantId;
  readonly rootRunId: RunId;
  readonly threadId: ThreadId;
  readonly runId: RunId;
  /** `lane`: the holder's facts at `version`. `signal`: others' facts, numbered by `signalSeq`, at the version they met. */
  readonly source: "lane" | "signal";
  readonly version: number;
  /** Number of the signal; 0 for lane entries and for the creation. */
  readonly signal: number;
  /** Milliseconds of the store's clock at the commit. */
  readonly at: number;
  readonly body: string;
  /**
   * Of the commit's first entry: its operation id and content digest, for receipts and `verify`; null on the others,
   * which follow it without an entry of another commit in between.
   */
  readonly operationId: OperationId | null;
  readonly digest: string | null;
}

export interface DelegationRow {
  readonly tenant: TenantId;
  readonly delegationId: DelegationId;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId;
  readonly childRunId: RunId;
  readonly step: number;
  readonly index: number;
  readonly target: string;
  readonly status: "open" | "cancel_requested" | "closed";
  readonly contractVersion: number;
  readonly contractDigest: string;
  /** Set once the cancel intent is committed on the child. */
  readonly intentDelivered: boolean;
}

export interface InboxRow {
  readonly tenant: TenantId;
  readonly delegationId: DelegationId;
  readonly parentRunId: RunId;
  readonly childRunId: RunId;
  readonly kind: "result" | "wait" | "resumed";
  readonly digest: string;
  readonly body: string;
  readonly status: "unread" | "consumed" | "discarded";
}

export interface TicketRow {
  readonly tenant: TenantId;
  readonly ticketId: TicketId;
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly kind: string;
  readonly status: "open" | "decided" | "closed";
  readonly openedAt: number;
  readonly deadlineAt: number | null;
  /** JSON of the `ticket_opened` fact. */
  readonly body: string;
  readonly decisionId: string | null;
  readonly decisionDigest: string | null;
  /** Why it was closed; null unless closed. */
  readonly closeReason: string | null;
}

export interface NewRun {
  readonly runId: RunId;
  readonly rootRunId: RunId;
  readonly parentRunId: RunId | null;
  readonly threadId: ThreadId;
  readonly delegationId: DelegationId | null;
  readonly agent: string;
  readonly publication: PublicationRef;
  readonly depth: number;
  readonly priority: number;
  readonly delayMs: number;
  /** On whose behalf; kept so that what is theirs can be erased. */
  readonly user: string | null;
  readonly summary: string;
  /** Body of the Run's first log entry. */
  readonly body: string;
  /** True if the committing incarnation would like to run it at once; granted if no older work is due and it fits the limits. */
  readonly claim: boolean;
}

/** How a lane commit leaves its Run. Parking and ending release the claim. */
export type LaneNext =
  | { readonly kind: "hold" }
  | {
      readonly kind: "park";
      readonly state: "waiting" | "awaiting" | "paused";
      readonly dueInMs: number | null;
      /** The `signalSeq` seen; if it has moved the Run is not parked and stays claimed, while the rest stands. */
      readonly signalSeqSeen: number;
    }
  | {
      readonly kind: "end";
      readonly endKind: string;
      /** Present while children may still deliver: refused as stale when the `signalSeq` has moved (L17). */
      readonly signalSeqSeen?: number;
    };

export interface LaneWrite {
  readonly runId: RunId;
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  /** The version the writer has; the commit makes it one higher. */
  readonly version: number;
  /** Present when the commit authorizes something new: refused if a control has come since (L23). */
  readonly controlSeqSeen: number | null;
  readonly next: LaneNext;
  readonly body: string;
  /** New summary, or null to keep the old one. */
  readonly summary: string | null;
  /** True when the body holds a fact for the lifecycle feed. */
  readonly lifecycle: boolean;
}

/** Facts that somebody else than the lane's holder writes onto a Run. */
export interface SignalWrite {
  readonly runId: RunId;
  readonly body: string;
  readonly lifecycle: boolean;
  /** True for cancel, pause and the like: also raises `controlSeq`. */
  readonly control: boolean;
  /** `refuse` makes the whole commit refused when the Run has ended; `record` keeps the fact for audit (L3). */
  readonly ifEnded: "refuse" | "record";
}

export interface Delivery {
  readonly delegationId: DelegationId;
  readonly parentRunId: RunId;
  readonly childRunId: RunId;
  readonly kind: "result" | "wait" | "resumed";
  readonly digest: string;
  readonly body: string;
}

export interface Commit {
  readonly tenant: TenantId;
  readonly rootRunId: RunId;
  readonly operationId: OperationId;
  /** Digest of everything the commit would write. */
  readonly digest: string;
  readonly lane: LaneWrite | null;
  readonly signals: readonly SignalWrite[];
  readonly create: readonly NewRun[];
  readonly openDelegations: readonly Omit<DelegationRow, "tenant" | "status" | "intentDelivered">[];
  readonly closeDelegations: readonly DelegationId[];
  readonly cancelDelegations: readonly DelegationId[];
  /** Marks cancel intents as committed on the child (with the signal in the same commit). */
  readonly intentsDelivered: readonly DelegationId[];
  readonly deliver: readonly Delivery[];
  /** Only the entry with this digest is moved; a newer one stays unread. */
  readonly readInbox: readonly {
    readonly delegationId: DelegationId;
    readonly digest: string;
    readonly status: "consumed" | "discarded";
  }[];
  readonly openTickets: readonly {
    readonly ticketId: TicketId;
    readonly runId: RunId;
    readonly kind: string;
    readonly deadlineInMs: number | null;
    readonly body: string;
  }[];
  readonly closeTickets: readonly { readonly ticketId: TicketId; readonly reason: string }[];
  /** A host's decision: refused unless the ticket is open and not past its deadline. */
  readonly decideTicket: {
    readonly ticketId: TicketId;
    readonly decisionId: string;
    readonly decisionDigest: string;
  } | null;
  /** The committing incarnation's wish to claim what this commit makes ready, or null. */
  readonly claim: {
    readonly incarnation: IncarnationId;
    readonly carries: ReadonlySet<string>;
    /** Claim the lane Run's parent if this commit's delivery makes it ready. */
    readonly parent: boolean;
  } | null;
}

export interface ClaimedRun {
  readonly runId: RunId;
  readonly epoch: number;
  readonly version: number;
  readonly signalSeq: number;
  readonly controlSeq: number;
  readonly fruitlessClaims: number;
}

export interface Receipt {
  readonly at: number;
  /** Lane version after the commit; null for a commit without a lane. */
  readonly version: number | null;
  readonly signalSeq: number;
  readonly controlSeq: number;
  /** False when the lane asked to park and a signal had come meanwhile. */
  readonly parked: boolean;
  readonly claimed: readonly ClaimedRun[];
  /** Deliveries that met a different result for the same delegation: the first stands (L16). */
  readonly conflicts: readonly DelegationId[];
}

export type CommitOutcome =
  | { readonly kind: "committed"; readonly receipt: Receipt }
  | { readonly kind: "duplicate"; readonly receipt: Receipt }
  | { readonly kind: "conflict"; readonly firstDigest: string }
  | {
      readonly kind: "stale";
      readonly reason: "absent" | "ended" | "version" | "epoch" | "control" | "signal";
    }
  | {
      readonly kind: "refused";
      readonly reason:
        | "run_absent"
        | "run_ended"
        | "run_exists"
        | "thread_not_root"
        | "ticket_absent"
        | "ticket_closed"
        | "ticket_decided"
        | "ticket_expired";
    };

export interface Pending {
  readonly signalSeq: number;
  readonly controlSeq: number;
  /** Signal entries with a number above the one asked for, in order. */
  readonly signals: readonly LogRow[];
  /** Unread envelopes addressed to the Run. */
  readonly inbox: readonly InboxRow[];
}

export interface WorkerRow {
  readonly tenant: TenantId;
  readonly incarnation: IncarnationId;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly heartbeatAt: number;
  readonly dead: boolean;
  readonly publications: readonly PublicationRef[];
}

export type FeedName = "lifecycle" | "operational";

export interface OperationalEvent {
  readonly kind: "worker_started" | "worker_stopped" | "worker_dead" | "claimed" | "released" | "lease_lost";
  readonly incarnation: IncarnationId;
  readonly runId: RunId | null;
  readonly epoch: number | null;
}

export interface FeedEntry {
  readonly seq: number;
  readonly at: number;
  /** A log entry for `lifecycle`, an event for `operational`. */
  readonly entry:
    | { readonly feed: "lifecycle"; readonly row: LogRow }
    | { readonly feed: "operational"; readonly event: OperationalEvent };
}

export interface FeedPage {
  readonly entries: readonly FeedEntry[];
  /** Opaque; pass it to read on. Nothing is ever committed behind it (L7). */
  readonly cursor: string;
}

export interface PublicationRow {
  readonly ref: PublicationRef;
  readonly name: string;
  readonly body: string;
  readonly publishedAt: number;
}

export interface RunFilter {
  readonly rootRunId?: RunId;
  readonly parentRunId?: RunId;
  readonly threadId?: ThreadId;
  readonly states?: readonly RowState[];
  /** Only Runs without a parent. */
  readonly rootsOnly?: boolean;
  /** Newest first by default. */
  readonly order?: "newest" | "oldest";
  readonly limit: number;
  readonly offset?: number;
}

export type LogScope =
  | { readonly runId: RunId }
  | { readonly threadId: ThreadId }
  | { readonly rootRunId: RunId }
  | { readonly all: true };

/** Told after something was committed; may be lost, doubled or early. No correctness depends on it. */
export interface WakeHint {
  readonly tenant: TenantId;
  /** The Run that was signalled; null when it is only known that something changed. */
  readonly runId: RunId | null;
  /**
   * `ready`: it can be claimed. `signal`: it is running and was signalled. `ended`: it has ended. `log`: something was
   * committed in the tenant.
   */
  readonly kind: "ready" | "signal" | "ended" | "log";
}

export interface Store {
  /** What this store can do; differences between stores are read here, never from its class. */
  readonly capabilities: {
    readonly kind: string;
    readonly durable: boolean;
    readonly multiProcess: boolean;
    /** All its workers are on one machine, so a process that is gone there proves a dead worker. */
    readonly oneHost: boolean;
  };
  /** What an operator does: limits, retention, erasure, inspection. */
  readonly operations: StoreOperations;
  /** The store's clock: the one that leases, due times and deadlines compare with. */
  now(): number;

  commit(commit: Commit): Promise<CommitOutcome>;

  registerWorker(
    tenant: TenantId,
    worker: {
      readonly incarnation: IncarnationId;
      readonly name: string;
      readonly host: string;
      readonly pid: number;
      readonly publications: readonly PublicationRef[];
    },
  ): Promise<void>;
  /** Renews the lease and reads back what the store says the incarnation holds. `alive` false is final. */
  heartbeat(
    tenant: TenantId,
    incarnation: IncarnationId,
  ): Promise<{ readonly alive: boolean; readonly held: readonly ClaimedRun[] }>;
  /** Ends the incarnation: its Runs become ready under a higher epoch. */
  deregisterWorker(tenant: TenantId, incarnation: IncarnationId): Promise<void>;
  /** Marks incarnations dead, once and for good, whose heartbeat is older than `leaseMs`; frees their Runs. */
  reapWorkers(tenant: TenantId, leaseMs: number): Promise<readonly IncarnationId[]>;
  listWorkers(tenant: TenantId): Promise<readonly WorkerRow[]>;

  /**
   * Claims due Runs that fit the tenant's limits, in order of due time (less a minute for each step of priority). Empty
   * for a dead incarnation.
   */
  claim(
    tenant: TenantId,
    request: {
      readonly incarnation: IncarnationId;
      readonly carries: ReadonlySet<string>;
      readonly limit: number;
    },
  ): Promise<readonly ClaimedRun[]>;
  /** Gives claims back without a fact: the Runs are ready again. A stale epoch is ignored. */
  release(
    tenant: TenantId,
    incarnation: IncarnationId,
    runs: readonly { readonly runId: RunId; readonly epoch: number }[],
  ): Promise<void>;
  /** Milliseconds of the store's clock at which the next parked or delayed Run is due; null if none. */
  nextDueAt(tenant: TenantId): Promise<number | null>;

  getRun(tenant: TenantId, runId: RunId): Promise<RunRow | null>;
  listRuns(tenant: TenantId, filter: RunFilter): Promise<readonly RunRow[]>;
  countRuns(tenant: TenantId): Promise<Readonly<Record<RowState, number>>>;
  readLog(tenant: TenantId, scope: LogScope, afterSeq: number, limit: number): Promise<readonly LogRow[]>;
  readPending(tenant: TenantId, runId: RunId, afterSignal: number): Promise<Pending>;
  getTicket(tenant: TenantId, ticketId: TicketId): Promise<TicketRow | null>;
  listTickets(
    tenant: TenantId,
    filter: {
      readonly rootRunId?: RunId;
      readonly runId?: RunId;
      readonly open?: boolean;
      readonly limit: number;
    },
  ): Promise<readonly TicketRow[]>;
  getDelegation(tenant: TenantId, delegationId: DelegationId): Promise<DelegationRow | null>;
  listDelegations(
    tenant: TenantId,
    filter: { readonly rootRunId?: RunId; readonly parentRunId?: RunId; readonly limit: number },
  ): Promise<readonly DelegationRow[]>;
  listInbox(tenant: TenantId, parentRunId: RunId): Promise<readonly InboxRow[]>;
  /** Cancel intents that are recorded on a relationship and not yet committed on the child. */
  pendingIntents(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]>;
  /** Open relationships of live parents whose child has no Run row. */
  orphanedDelegations(tenant: TenantId, limit: number): Promise<readonly DelegationRow[]>;

  /** Idempotent by ref; the newest publication of a name is its head. */
  putPublication(tenant: TenantId, publication: Omit<PublicationRow, "publishedAt">): Promise<void>;
  getPublication(tenant: TenantId, ref: PublicationRef): Promise<PublicationRow | null>;
  headPublication(tenant: TenantId, name: string): Promise<PublicationRow | null>;
  listPublications(tenant: TenantId): Promise<readonly PublicationRow[]>;

  /** @param after a cursor of an earlier page, or null for the start. A cursor of another database is refused by name. */
  readFeed(tenant: TenantId, feed: FeedName, after: string | null, limit: number): Promise<FeedPage>;

  /** Listens to hints until the returned function is called. */
  onWake(listener: (hint: WakeHint) => void): () => void;
  close(): Promise<void>;
}
