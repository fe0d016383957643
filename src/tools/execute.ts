import { type CallOutcome, failed } from "../domain/tool-batch/call-outcome.ts";
import { jsonCopy } from "../rules/json-copy.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * Runs a tool's body to its one outcome. What the body throws is its outcome; only the runtime's own abort rejects,
 * because whether the call then ended is the runtime's to decide. A body that ignores its signal is not waited for.
 */
export function execute(
  tool: string,
  timeoutMs: number,
  body: (signal: AbortSignal) => unknown,
  signal: AbortSignal,
): Promise<CallOutcome> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const controller = new AbortController();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
      controller.abort(signal.reason);
    };
    const end = (outcome: CallOutcome): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const timer = setTimeout(() => {
      const message = `Tool ${tool} did not answer within ${timeoutMs} ms.`;
      end(failed("tool_timeout", message, { timeoutMs }));
      controller.abort(new DOMException(message, "TimeoutError"));
    }, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    Promise.resolve()
      .then(() => body(controller.signal))
      .then(
        (value) => end(valueOutcome(tool, value)),
        (error: unknown) => end(errorOutcome(tool, error)),
      );
  });
}

function valueOutcome(tool: string, value: unknown): CallOutcome {
  try {
    return { ok: true, value: jsonCopy(value) };
  } catch (error) {
    return failed(
      "tool_result_invalid",
      `Tool ${tool} answered with no JSON value: ${(error as Error).message}.`,
    );
  }
}

function errorOutcome(tool: string, error: unknown): CallOutcome {
  if (ToolFailure.is(error)) return failed(error.code, error.message, error.details);
  const message = error instanceof Error ? error.message : String(error);
  return failed("tool_error", message === "" ? `Tool ${tool} failed without a message.` : message);
}
