import type { RunHeader } from "../../domain/run/run-header.ts";
import type { MoveContext } from "../ports/carrier.ts";
import type { LiveDelta } from "../ports/live-bus.ts";
import type { LoadedRun } from "../run/loaded-run.ts";
import type { DriverHost } from "./driver-host.ts";

/** What a carrier sees of its Run at a safe point. */
export function moveContext(host: DriverHost, run: LoadedRun): MoveContext {
  const { state, history, journal, decided } = run;
  const { tenant, store, telemetry } = host;
  const { header, ticket } = state;
  return {
    header,
    attempt: state.attempt,
    input: state.input,
    history,
    journal,
    note: state.note,
    answer: ticket === null ? undefined : decided.get(ticket.ticketId),
    stepsTaken: state.nextStep - 1,
    now: store.now(),
    emit: (delta) => emitDelta(host, header, delta),
    warn: (message) => telemetry.emit({ type: "run_warning", tenant, runId: header.runId, message }),
  };
}

/** Tags a live delta with where it comes from, so that a watcher of the tree can place it. */
export function emitDelta(host: DriverHost, header: RunHeader, delta: LiveDelta): void {
  const { runId, rootRunId, origin } = header;
  host.bus.publish({
    tenant: host.tenant,
    rootRunId,
    runId,
    parentRunId: origin?.parentRunId ?? null,
    delegationId: origin?.delegationId ?? null,
    parentCall: origin === null ? null : `${origin.call.step}.${origin.call.index}`,
    delta,
  });
}
