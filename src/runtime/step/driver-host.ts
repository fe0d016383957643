import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";
import type { RunEnd } from "../../domain/run/run-end.ts";
import type { Committer } from "../commit/committer.ts";
import type { PublicationCatalog } from "../catalog/publication-catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { CarrierSession } from "../ports/carrier.ts";
import type { LiveBus } from "../ports/live-bus.ts";
import type { ClaimedRun, InboxRow, Store } from "../ports/store.ts";
import type { Telemetry } from "../ports/telemetry.ts";
import type { LoadedRun } from "../run/loaded-run.ts";
import type { RuntimeSettings } from "./runtime-settings.ts";

/** A Run that this process has in memory: what it has decoded, and the carrier at work on it. */
export interface WarmRun {
  readonly run: LoadedRun;
  readonly session: CarrierSession | null;
  /** Signals it had seen when it was put away. */
  readonly signalSeq: number;
}

/** What a driver needs of the worker that runs it. */
export interface DriverHost {
  readonly tenant: TenantId;
  readonly incarnation: IncarnationId;
  readonly store: Store;
  readonly committer: Committer;
  readonly catalog: PublicationCatalog;
  readonly clock: Clock;
  readonly bus: LiveBus;
  readonly telemetry: Telemetry;
  readonly settings: RuntimeSettings;
  readonly carries: ReadonlySet<string>;
  /** True while the lease was renewed recently enough to begin an effect under it (L10). */
  leaseIsFresh(): boolean;
  /** Runs that could be started besides those already running. */
  freeSlots(): number;
  /** True once the worker hands its Runs back. */
  readonly draining: boolean;
  /** Takes over claims that a commit granted; `handed` is what that commit delivered to them. */
  adopt(claims: readonly ClaimedRun[], handed: readonly InboxRow[]): void;
  /** Keeps a parked or a newly created Run in memory for its next claim; bounded, the oldest go first. */
  keepWarm(runId: RunId, warm: WarmRun): void;
  takeWarm(runId: RunId): WarmRun | undefined;
  /** Told of a Run's committed end. */
  ended(runId: RunId, end: RunEnd): void;
  /** Told when a Run's last commit recorded cancel intents, so that they leave at once. */
  intentsRecorded(): void;
}
