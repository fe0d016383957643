import { type Usage, NO_USAGE } from "../../domain/budget/usage.ts";

/** What a model costs, in whole units of a currency for each million tokens. */
export interface ModelPrice {
  readonly inputPerMillionTokens: number;
  readonly outputPerMillionTokens: number;
}

/**
 * The usage of one model call from the provider's finish event. Counts come as `{ total }` or, from older providers, as
 * numbers. A call that reports nothing, or zero for what cannot be zero, is unreported: unknown is not zero.
 */
export function reportedUsage(raw: unknown, price: ModelPrice | undefined): Usage {
  const record = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
  const inputTokens = tokenCount(record["inputTokens"]);
  const outputTokens = tokenCount(record["outputTokens"]);
  const known = (inputTokens ?? 0) > 0 && outputTokens !== undefined;
  const counted = { input: inputTokens ?? 0, output: outputTokens ?? 0 };
  return {
    ...NO_USAGE,
    inputTokens: counted.input,
    outputTokens: counted.output,
    modelCalls: 1,
    unreportedModelCalls: known ? 0 : 1,
    costMicros:
      price === undefined
        ? 0
        : // A price for each million tokens is the same number of micros for each token.
          Math.round(
            counted.input * price.inputPerMillionTokens + counted.output * price.outputPerMillionTokens,
          ),
  };
}

function tokenCount(value: unknown): number | undefined {
  const total = typeof value === "object" && value !== null ? (value as { total?: unknown }).total : value;
  return typeof total === "number" && Number.isFinite(total) && total >= 0 ? Math.round(total) : undefined;
}
