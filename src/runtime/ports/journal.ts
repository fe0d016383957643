import type { Json } from "../../rules/json.ts";
import type { CallOutcome } from "../../domain/tool-batch/call-outcome.ts";

/** A call as a replaying carrier sees it: where it was issued, what it asked, and its one answer. */
export interface RecordedCall {
  readonly step: number;
  readonly index: number;
  readonly site: string | null;
  readonly tool: string;
  readonly input: Json;
  readonly answer: CallOutcome;
}
