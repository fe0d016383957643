export { HandClock } from "./hand-clock.ts";
export type { StoreClaim, StoreContractCase, StoreHarness } from "./store-contract/contract-case.ts";
export { registerStoreContract } from "./store-contract/register.ts";
export { storeContract } from "./store-contract/store-contract.ts";
