import { commitCases } from "./commit-cases.ts";
import type { StoreContractCase } from "./contract-case.ts";
import { laneCases } from "./lane-cases.ts";
import { signalCases } from "./signal-cases.ts";

/** What a store is: whoever passes all of these under its claims is one. Names carry the laws that they prove. */
export const storeContract: readonly StoreContractCase[] = [...commitCases, ...laneCases, ...signalCases];
