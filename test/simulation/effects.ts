import type { CallRequest } from "../../src/domain/tool-batch/call-request.ts";
import type { RunId } from "../../src/domain/id.ts";
import type { RunFact } from "../../src/domain/run/run-fact.ts";
import type { Commit, CommitOutcome, Store } from "../../src/runtime/ports/store.ts";
import { decodeFacts } from "../../src/runtime/run/loaded-run.ts";
import type { FakeService } from "./fake-service.ts";

interface KnownCall {
  readonly request: CallRequest;
  /** Its one answer: `ok`, the code of its error, or why it is unknown; null while it is open. */
  answer: string | null;
}

/** What the log says of the calls of tools, to be held against what the world outside has counted. */
export class CallLedger {
  readonly #calls = new Map<string, KnownCall>();
  readonly #begun = new Set<string>();

  /** Told of every commit as soon as it stands. */
  committed(commit: Commit, outcome: CommitOutcome): void {
    const { lane } = commit;
    if (lane === null || outcome.kind !== "committed") return;
    // Most commits begin no call.
    if (!lane.body.includes('"call_executing"')) return;
    for (const fact of decodeFacts(lane.body)) {
      if (fact.type === "call_executing") this.#begun.add(`${lane.runId}:${fact.step}.${fact.index}`);
    }
  }

  /** True if a commit says that the call begins: only then may its effect be seen (L8). */
  hasBegun(key: string): boolean {
    return this.#begun.has(key);
  }

  read(runId: RunId, facts: readonly RunFact[]): void {
    for (const fact of facts) {
      if (fact.type === "step_published") {
        for (const [index, request] of fact.calls.entries()) {
          if (request.kind !== "tool") continue;
          this.#calls.set(`${runId}:${fact.step}.${index}`, { request, answer: null });
        }
      } else if (fact.type === "call_completed" || fact.type === "call_indeterminate") {
        const call = this.#calls.get(`${runId}:${fact.step}.${fact.index}`);
        if (call === undefined) continue;
        call.answer =
          fact.type === "call_indeterminate" ? fact.reason : fact.outcome.ok ? "ok" : fact.outcome.error.code;
      }
    }
  }

  /** Where answers and counts do not go together. */
  check(service: FakeService): string[] {
    const problems: string[] = [];
    for (const [key, { request, answer }] of this.#calls) {
      const { requests, applied } = service.counts.get(key) ?? { requests: 0, applied: 0 };
      const counted = `${request.tool} ${key} (${request.replay}) took effect ${applied} times in ${requests} requests`;
      if (applied > 1) problems.push(counted);
      if (request.replay === "never" && requests > 1) problems.push(counted);
      // An answer of its own says that the effect was there.
      if ((answer === "ok" || answer === "refused_by_service") && applied !== 1) {
        problems.push(`${counted}, and was answered ${answer}`);
      }
      if (answer === "not_started" && requests > 0) problems.push(`${counted}, and was answered not_started`);
    }
    for (const key of service.counts.keys()) if (!this.#calls.has(key)) problems.push(`${key} is no call`);
    return problems;
  }
}

/** A store that tells of every commit with its outcome, before anybody else hears of it. */
export function observed(store: Store, told: (commit: Commit, outcome: CommitOutcome) => void): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === "commit") {
        return async (commit: Commit): Promise<CommitOutcome> => {
          const outcome = await target.commit(commit);
          told(commit, outcome);
          return outcome;
        };
      }
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
