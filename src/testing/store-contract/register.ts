import type { StoreClaim, StoreHarness } from "./contract-case.ts";
import { storeContract } from "./store-contract.ts";

/**
 * Registers the whole contract with a test runner: `test` of vitest, of node:test, or anything of that shape.
 * @param claims what the store can do beyond the base; cases that need anything else are left out.
 */
export function registerStoreContract(
  test: (name: string, run: () => Promise<void>) => void,
  harness: () => StoreHarness | Promise<StoreHarness>,
  claims: readonly StoreClaim[] = [],
): void {
  for (const contractCase of storeContract) {
    if (contractCase.needs.some((claim) => !claims.includes(claim))) continue;
    test(contractCase.name, async () => {
      const made = await harness();
      try {
        await contractCase.run(made);
      } finally {
        await made.dispose?.();
      }
    });
  }
}
