import { ErrandError } from "../domain/errand-error.ts";
import type { EffectClass, ReplayPolicy } from "../domain/tool-batch/call-request.ts";
import { canonicalJson } from "../rules/canonical-json.ts";
import type { JsonSchema } from "../rules/json-schema.ts";
import type { Json } from "../rules/json.ts";
import {
  type Parsed,
  type SchemaInput,
  type SchemaOutput,
  type SchemaReader,
  type StandardSchema,
  readSchema,
} from "../runtime/ports/standard-schema.ts";
import type { Tool, ToolCallContext } from "../runtime/ports/tool.ts";
import { execute } from "./execute.ts";

/** A tool with the types of its input and output, for callers in TypeScript. */
export interface DefinedTool<Input = unknown, Output = unknown> extends Tool {
  /** Only for types: never set. */
  readonly types?: { readonly input: Input; readonly output: Output };
}

/** What a caller gets: a tool that returns nothing answers null. */
export type ToolAnswer<Output> = [Output] extends [void] ? null : Output extends undefined ? null : Output;

export interface ToolOptions<S extends StandardSchema, Output> {
  readonly name: string;
  readonly description: string;
  /** Checks and types the input. Omit it to take whatever fits `inputSchema`. */
  readonly input?: S;
  /** Needed only where `input` is missing or cannot say itself as JSON Schema. */
  readonly inputSchema?: JsonSchema;
  /** What recovery may do with a call that began and has no recorded end (L10). */
  readonly replay: ReplayPolicy;
  readonly effect: EffectClass;
  /** May run at the same time as its siblings. Default: true for effects `none` and `read_only`. */
  readonly parallel?: boolean;
  /** Whether a person must approve a call. Decided once, from the input alone; a rule that throws asks for approval. */
  readonly approval?: boolean | ((input: SchemaOutput<S>) => boolean);
  readonly approvalPrompt?: (input: SchemaOutput<S>) => string;
  /** Default 60,000. */
  readonly timeoutMs?: number;
  /** How often recovery may begin one call, the first time included. Default 3. */
  readonly maxExecutions?: number;
  run(input: SchemaOutput<S>, context: ToolCallContext, signal: AbortSignal): Output | Promise<Output>;
  /** For `durable` tools: finds the work that was started under `context.effectKey`, and its outcome. */
  reconnect?(input: SchemaOutput<S>, context: ToolCallContext, signal: AbortSignal): Output | Promise<Output>;
}

const RESERVED: ReadonlySet<string> = new Set([
  "agent_run",
  "agent_start",
  "agent_status",
  "agent_join",
  "agent_answer",
  "agent_cancel",
  "agent_revise",
  "ask",
  "send_message",
  "wait_message",
  "handoff",
  "sleep",
  "now",
  "random",
]);
const REPLAY: readonly string[] = ["never", "safe", "idempotent", "durable"] satisfies ReplayPolicy[];
const EFFECTS: readonly string[] = ["none", "read_only", "idempotent", "any"] satisfies EffectClass[];
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Makes a tool out of a function and the rules under which it may run. */
export function defineTool<S extends StandardSchema = StandardSchema<Json>, Output = unknown>(
  options: ToolOptions<S, Output>,
): DefinedTool<SchemaInput<S>, ToolAnswer<Output>> {
  const { name, replay, effect, timeoutMs = 60_000, maxExecutions = 3, approval = false } = options;
  checkOptions(options, timeoutMs, maxExecutions);
  const schema = readSchema(options.input, options.inputSchema, {
    code: "INVALID_TOOL",
    of: `Tool "${name}"`,
    option: "input",
    jsonOption: "inputSchema",
    side: "input",
  });
  checkObjectSchema(name, schema.json);
  const parse = (input: unknown): Parsed => parseNow(name, schema, input);
  // The parser made this value of the schema's output type; the cast says so once.
  const typed = (value: unknown): SchemaOutput<S> => value as SchemaOutput<S>;
  return {
    name,
    description: options.description,
    inputSchema: schema.json,
    replay,
    effect,
    parallel: options.parallel ?? (effect === "none" || effect === "read_only"),
    timeoutMs,
    maxExecutions,
    mayNeedApproval: approval !== false,
    approval(input) {
      if (typeof approval === "boolean") return approval;
      const value = parse(input);
      if (!value.ok) return false; // refused before it starts, so there is nothing to approve
      try {
        return approval(typed(value.value));
      } catch {
        return true;
      }
    },
    approvalPrompt(input) {
      const value = options.approvalPrompt === undefined ? undefined : parse(input);
      return options.approvalPrompt !== undefined && value?.ok === true
        ? options.approvalPrompt(typed(value.value))
        : `Allow ${name} with ${canonicalJson(input)}?`;
    },
    parse,
    run: (value, context, signal) =>
      execute(name, timeoutMs, (own) => options.run(typed(value), context, own), signal),
    ...(options.reconnect === undefined
      ? {}
      : {
          reconnect: (value: unknown, context: ToolCallContext, signal: AbortSignal) =>
            execute(name, timeoutMs, (own) => options.reconnect?.(typed(value), context, own), signal),
        }),
  };
}

/** A call's input is checked between two commits, so its schema must answer at once. */
function parseNow(name: string, schema: SchemaReader, input: unknown): Parsed {
  const result = schema.parse(input);
  if (!(result instanceof Promise)) return result;
  result.catch(() => undefined);
  throw new ErrandError(
    "INVALID_TOOL",
    `Tool "${name}" has an input schema that answers with a promise.`,
    "Take asynchronous checks out of the schema and make them in `run`; throw ToolFailure there.",
  );
}

function checkOptions<S extends StandardSchema, Output>(
  options: ToolOptions<S, Output>,
  timeoutMs: number,
  maxExecutions: number,
): void {
  const { name, replay, effect } = options;
  const refuse = (what: string, fix: string): never => {
    throw new ErrandError("INVALID_TOOL", `Tool ${JSON.stringify(name)} ${what}.`, fix);
  };
  if (typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    refuse("has a name that model providers refuse", 'Use 1 to 64 letters, digits, "_" and "-".');
  }
  if (RESERVED.has(name)) refuse("has the name of a built-in call", "Choose another name.");
  if (typeof options.description !== "string" || options.description.trim() === "") {
    refuse("has no description", "Say what it does and when to use it; a model chooses by that.");
  }
  if (typeof options.run !== "function") refuse("has no `run`", "Give the function that does the work.");
  if (!REPLAY.includes(replay)) {
    refuse(`has the replay policy ${JSON.stringify(replay)}`, `Use one of ${REPLAY.join(", ")}.`);
  }
  if (!EFFECTS.includes(effect)) {
    refuse(`has the effect class ${JSON.stringify(effect)}`, `Use one of ${EFFECTS.join(", ")}.`);
  }
  if (effect === "any" && replay === "safe") {
    refuse(
      'has effect "any" and replay "safe", so a crash could make its effect happen twice',
      'Use replay "idempotent" and pass `context.effectKey` on, or replay "never".',
    );
  }
  if (replay === "durable" && options.reconnect === undefined) {
    refuse(
      'has replay "durable" and no `reconnect`',
      "Add `reconnect`, which finds the work under `context.effectKey`, or choose another policy.",
    );
  }
  if (replay !== "durable" && options.reconnect !== undefined) {
    refuse(
      `has a \`reconnect\` that replay "${replay}" never calls`,
      'Use replay "durable" or leave it out.',
    );
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMER_MS) {
    refuse(`has the timeout ${timeoutMs}`, `Use whole milliseconds from 1 to ${MAX_TIMER_MS}.`);
  }
  if (!Number.isInteger(maxExecutions) || maxExecutions < 1) {
    refuse(`has maxExecutions ${maxExecutions}`, "Use a whole number from 1 on.");
  }
}

function checkObjectSchema(name: string, schema: JsonSchema): void {
  const type = typeof schema === "boolean" ? "boolean" : schema["type"];
  if (type === undefined || type === "object") return;
  throw new ErrandError(
    "INVALID_TOOL",
    `Tool "${name}" takes an input that is not an object.`,
    "Model providers send objects only: give an object schema, with the value as one of its members.",
  );
}
