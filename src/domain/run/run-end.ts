import type { Json } from "../../rules/json.ts";
import type { CallError } from "../tool-batch/call-outcome.ts";

/** How a Run ended: final, written once (L3). */
export type RunEnd =
  | { readonly kind: "completed"; readonly output: Json }
  | { readonly kind: "failed"; readonly error: CallError }
  | {
      readonly kind: "canceled";
      readonly reason: string;
      /** False when a peer that carried the work has not confirmed that it stopped. */
      readonly confirmed: boolean;
    }
  | { readonly kind: "stopped"; readonly reason: "limit" | "deadline" | "blocked"; readonly detail: string }
  | { readonly kind: "indeterminate"; readonly reason: string };
