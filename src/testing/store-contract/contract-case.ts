import type { Store } from "../../runtime/ports/store.ts";
import { World } from "./world.ts";

/** What a store brings to its contract: how to open it, and the clock that it reads. Each case gets a fresh one. */
export interface StoreHarness {
  /** Opens a new, empty database of its own, also when called again; its time is that of `clock`. */
  open(): Promise<Store>;
  /** Durable stores: closes the store and opens the same database again. */
  reopen?(store: Store): Promise<Store>;
  /** A second connection to the database that `open` gave last. */
  openSecond?(): Promise<Store>;
  readonly clock: { now(): number; advance(ms: number): void };
  /** Removes what the harness has made, after the case. */
  dispose?(): Promise<void>;
}

/** What not every store can do; a store states which of them it claims. */
export type StoreClaim =
  | "reopen"
  | "openSecond"
  /** Claims keep to limits of running Runs. */
  | "limits"
  /** A person's trees are found by `NewRun.user`. */
  | "users";

export interface StoreContractCase {
  readonly name: string;
  /** The claims without which the case does not apply. */
  readonly needs: readonly StoreClaim[];
  /** Throws if the store breaks the contract. */
  run(harness: StoreHarness): Promise<void>;
}

/** A case on one fresh store, which is closed whatever happens. */
export function storeCase(name: string, body: (world: World) => Promise<void>): StoreContractCase {
  return {
    name,
    needs: [],
    async run(harness) {
      const store = await harness.open();
      try {
        await body(new World(store, harness.clock));
      } finally {
        await store.close();
      }
    },
  };
}

/** A case that looks at the same database again after the store was closed; `after` gets what `before` answers. */
export function durableCase<T>(
  name: string,
  before: (world: World) => Promise<T>,
  after: (world: World, kept: T) => Promise<void>,
): StoreContractCase {
  return {
    name,
    needs: ["reopen"],
    async run(harness) {
      if (harness.reopen === undefined) throw new Error("This case needs a harness with reopen().");
      let store = await harness.open();
      try {
        const world = new World(store, harness.clock);
        const kept = await before(world);
        store = await harness.reopen(store);
        await after(world.on(store), kept);
      } finally {
        await store.close();
      }
    },
  };
}

/** The case for those stores alone that state the claim, besides the claims that it has. */
export function needing(claim: StoreClaim, given: StoreContractCase): StoreContractCase {
  return { ...given, needs: [...given.needs, claim] };
}

/** A case with two connections to one database. */
export function pairCase(
  name: string,
  body: (first: World, second: World) => Promise<void>,
): StoreContractCase {
  return {
    name,
    needs: ["openSecond"],
    async run(harness) {
      if (harness.openSecond === undefined) throw new Error("This case needs a harness with openSecond().");
      const first = await harness.open();
      try {
        const second = await harness.openSecond();
        try {
          const world = new World(first, harness.clock);
          await body(world, world.on(second));
        } finally {
          await second.close();
        }
      } finally {
        await first.close();
      }
    },
  };
}
