import type { StreamEvent } from "../library/stream.ts";
import { factText } from "./fact-text.ts";
import { clockText, plain } from "./measure.ts";
import type { Style } from "./style.ts";

type FactEvent = StreamEvent & { readonly kind: "fact" };

/** Reads a tree's events in order and remembers what each Run is doing and what its calls are called. */
export class RunFeed {
  readonly #names = new Map<string, string>();
  readonly #doing = new Map<string, string>();

  /** What each Run is at, by run id; for the rows of a live tree. */
  get doing(): ReadonlyMap<string, string> {
    return this.#doing;
  }

  read(event: StreamEvent): void {
    if (event.kind === "live") {
      const { delta } = event;
      if (delta.kind === "progress") {
        const share = delta.fraction === null ? "" : ` ${Math.round(delta.fraction * 100)}%`;
        this.#doing.set(event.runId, `${delta.tool}: ${plain(delta.message)}${share}`);
      } else if (delta.kind === "text") {
        const before = this.#doing.get(event.runId) ?? "";
        const text = before.startsWith("› ") ? before : "› ";
        this.#doing.set(event.runId, `› ${plain(text.slice(2) + delta.text).slice(-80)}`);
      }
      return;
    }
    const { fact, runId } = event;
    switch (fact.type) {
      case "step_published":
        for (const [index, call] of fact.calls.entries()) {
          this.#names.set(`${runId} ${fact.step}.${index}`, call.tool);
        }
        this.#doing.delete(runId);
        break;
      case "call_executing": {
        // A child has a row of its own, so waiting for it needs no word.
        const name = this.#names.get(`${runId} ${fact.step}.${fact.index}`);
        if (name !== undefined && name !== "agent_run") this.#doing.set(runId, name);
        break;
      }
      case "call_completed":
      case "call_indeterminate":
      case "batch_finalized":
      case "run_ended":
        this.#doing.delete(runId);
        break;
      case "attempt_failed":
        this.#doing.set(runId, `${fact.error.code}: ${plain(fact.error.message)}`);
        break;
      default:
        break;
    }
  }

  /** A fact as a line of `logs`. Read every event before it is shown. */
  line(event: FactEvent, style: Style): string {
    const { color } = style;
    const text = factText(
      event.fact,
      (step, index) => this.#names.get(`${event.runId} ${step}.${index}`) ?? null,
    );
    const shown = isEnd(event, "failed", "stopped", "indeterminate")
      ? color.red(text)
      : isEnd(event, "completed")
        ? color.green(text)
        : event.fact.type === "ticket_opened"
          ? color.yellow(text)
          : text;
    const place = color.dim(`${String(event.seq).padStart(6)} ${clockText(event.at)}`);
    return `${place} ${event.runId} ${color.bold(event.agent)} ${shown}`;
  }
}

/** Facts that tell how a tree gets on, without its bookkeeping. */
export function isMilestone(event: FactEvent): boolean {
  switch (event.fact.type) {
    case "attempt_failed":
    case "ticket_opened":
    case "ticket_decided":
    case "cancel_requested":
    case "pause_requested":
    case "continue_requested":
    case "call_indeterminate":
    case "child_missing":
    case "run_ended":
      return true;
    case "attempt_started":
      return true;
    default:
      return false;
  }
}

function isEnd(event: FactEvent, ...kinds: readonly string[]): boolean {
  return event.fact.type === "run_ended" && kinds.includes(event.fact.end.kind);
}
