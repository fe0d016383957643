import { ErrandError } from "../../src/domain/errand-error.ts";
import type { Commit, CommitOutcome, Store, WakeHint } from "../../src/runtime/ports/store.ts";

/** What a test does around calls of a store. What a hook throws, the caller sees. */
export interface StoreHooks {
  /** Before the store is called: to throw is a request that never arrived. May answer another commit to make. */
  commit?(commit: Commit): void | Commit | Promise<void | Commit>;
  /** After the store has answered: to throw is a reply that was lost. */
  committed?(commit: Commit, outcome: CommitOutcome): void | Promise<void>;
  /** Before any other call. */
  call?(name: keyof Store, args: readonly unknown[]): void | Promise<void>;
  /** After any other call. */
  answered?(name: keyof Store, answer: unknown): void | Promise<void>;
  /** Drops the hints for which it answers false. */
  wake?(hint: WakeHint): boolean;
}

/** A store with hooks around its asynchronous calls. */
export function hookedStore(store: Store, hooks: StoreHooks): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      const method = member.bind(target) as (...args: unknown[]) => unknown;
      if (name === "now" || name === "close") return method;
      if (name === "onWake") {
        return (listener: (hint: WakeHint) => void) =>
          target.onWake((hint) => {
            if (hooks.wake?.(hint) !== false) listener(hint);
          });
      }
      if (name === "commit") {
        return async (given: Commit) => {
          const commit = (await hooks.commit?.(given)) ?? given;
          const outcome = await target.commit(commit);
          await hooks.committed?.(commit, outcome);
          return outcome;
        };
      }
      return async (...args: unknown[]) => {
        await hooks.call?.(name, args);
        const answer = await method(...args);
        await hooks.answered?.(name, answer);
        return answer;
      };
    },
  });
}

/** A store that tells when an asynchronous call of it begins; what `entered` answers is called when the call has settled. */
export function watchedStore(store: Store, entered: () => () => void): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      const method = member.bind(target) as (...args: unknown[]) => unknown;
      if (name === "now" || name === "close" || name === "onWake") return method;
      return async (...args: unknown[]) => {
        const left = entered();
        try {
          return await method(...args);
        } finally {
          left();
        }
      };
    },
  });
}

/** The trouble of a connection that broke: nobody knows what became of the call. */
export function brokenConnection(): ErrandError {
  return new ErrandError("STORE_UNAVAILABLE", "The connection broke.", "Try again.");
}
