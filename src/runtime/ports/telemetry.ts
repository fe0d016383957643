import type { IncarnationId, RunId, TenantId } from "../../domain/id.ts";

/** What the runtime tells whoever operates it. Never a secret, never a prompt (L32). */
export type TelemetryEvent =
  | {
      readonly type: "run_warning";
      readonly tenant: TenantId;
      readonly runId: RunId;
      readonly message: string;
    }
  | {
      readonly type: "run_abandoned";
      readonly tenant: TenantId;
      readonly runId: RunId;
      readonly reason: string;
    }
  | {
      readonly type: "store_trouble";
      readonly tenant: TenantId;
      readonly during: string;
      readonly error: unknown;
    }
  | { readonly type: "worker_lost_lease"; readonly tenant: TenantId; readonly incarnation: IncarnationId }
  | { readonly type: "worker_dead"; readonly tenant: TenantId; readonly incarnation: IncarnationId }
  | {
      readonly type: "unexpected";
      readonly tenant: TenantId;
      readonly runId: RunId | null;
      readonly error: unknown;
    };

/** The library never prints; it tells this port. */
export interface Telemetry {
  emit(event: TelemetryEvent): void;
}

/** The same port for the runtime's own use: a listener that throws is its own affair and stops no Run. */
export function unfailing(telemetry: Telemetry): Telemetry {
  return {
    emit(event) {
      try {
        telemetry.emit(event);
      } catch {
        // There is nobody left to tell.
      }
    },
  };
}
