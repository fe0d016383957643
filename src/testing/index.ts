export { HandClock } from "./hand-clock.ts";
export type { StoreClaim, StoreContractCase, StoreHarness } from "./store-contract/contract-case.ts";
export { registerStoreContract } from "./store-contract/register.ts";
export { storeContract } from "./store-contract/store-contract.ts";
export {
  type Fault,
  type FaultPlan,
  type FaultRates,
  type FaultRule,
  NO_FAULTS,
  type StoreCall,
  type StoreMethod,
  type WakeFault,
  plannedFaults,
  seededFaults,
} from "./fault-plan.ts";
export { FaultyStore } from "./faulty-store.ts";
export { InvariantWatch, checkInvariants, problemText } from "./history-checks.ts";
export { SeededRandom } from "./seeded-random.ts";
export { VirtualClock, settled } from "./virtual-clock.ts";
