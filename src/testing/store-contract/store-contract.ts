import { claimCases } from "./claim-cases.ts";
import { commitCases } from "./commit-cases.ts";
import type { StoreContractCase } from "./contract-case.ts";
import { delegationCases } from "./delegation-cases.ts";
import { deliveryCases } from "./delivery-cases.ts";
import { feedCases } from "./feed-cases.ts";
import { laneCases } from "./lane-cases.ts";
import { limitCases } from "./limit-cases.ts";
import { lifetimeCases } from "./lifetime-cases.ts";
import { publicationCases } from "./publication-cases.ts";
import { randomWalkCases } from "./random-walk-cases.ts";
import { retentionCases } from "./retention-cases.ts";
import { signalCases } from "./signal-cases.ts";
import { tenantCases } from "./tenant-cases.ts";
import { threadCases } from "./thread-cases.ts";
import { ticketCases } from "./ticket-cases.ts";
import { workerCases } from "./worker-cases.ts";

/** What a store is: whoever passes all of these under its claims is one. Names carry the laws that they prove. */
export const storeContract: readonly StoreContractCase[] = [
  ...commitCases,
  ...laneCases,
  ...signalCases,
  ...delegationCases,
  ...deliveryCases,
  ...claimCases,
  ...limitCases,
  ...workerCases,
  ...ticketCases,
  ...threadCases,
  ...feedCases,
  ...publicationCases,
  ...tenantCases,
  ...retentionCases,
  ...lifetimeCases,
  ...randomWalkCases,
];
