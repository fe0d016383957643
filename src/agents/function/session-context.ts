import { ErrandError } from "../../domain/errand-error.ts";
import type { RunId } from "../../domain/id.ts";
import type { JsonSchema } from "../../rules/json-schema.ts";
import type { Json } from "../../rules/json.ts";
import { sha256Hex } from "../../rules/sha256.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { MoveContext } from "../../runtime/ports/carrier.ts";
import { type SchemaReader, isStandardSchema, readSchema } from "../../runtime/ports/standard-schema.ts";
import type { Tool } from "../../runtime/ports/tool.ts";
import type { ParsedJson } from "../agent-options.ts";
import type { CallOptions, FunctionContext, Question } from "./function-context.ts";
import { callFailed } from "./function-failure.ts";

/** What a session needs of its agent. */
export interface FunctionBody {
  readonly name: string;
  readonly mayAsk: boolean;
  /** How long a replay waits for a recorded call that the function does not make again. */
  readonly replayPatienceMs: number;
  /** Converts what the function returned; null if its schema converts nothing. */
  readonly output: SchemaReader | null;
  parseInput(input: unknown): Promise<ParsedJson>;
  lists(what: Tool | AgentDefinition): boolean;
  run(context: FunctionContext, input: unknown): unknown;
}

/** The session as its function's contexts see it. */
export interface FunctionLife {
  readonly body: FunctionBody;
  readonly run: MoveContext;
  readonly signal: AbortSignal;
  readonly replaying: boolean;
  /** True once nothing of the function is heard any more. */
  readonly ended: boolean;
  /** Makes a call; `known` answers it when it is published, without asking anybody. */
  issue(site: string, tool: string, input: unknown, known?: (run: MoveContext) => Json): Promise<Json>;
  continueAs(state: unknown): Promise<never>;
}

export const never = (): Promise<never> => new Promise(() => undefined);

/** Keeps a promise that the function drops from ending the process. */
export function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

export function refused(code: "INVALID_INPUT" | "INVALID_AGENT", what: string, fix: string): Promise<never> {
  return heard(Promise.reject(new ErrandError(code, what, fix)));
}

/** One branch of a function: it numbers its calls, and says what each of them asks. */
export class SessionContext implements FunctionContext {
  readonly #life: FunctionLife;
  readonly #path: string;
  #ordinal = 0;
  #branches: Set<string> | null = null;

  constructor(life: FunctionLife, path: string) {
    this.#life = life;
    this.#path = path;
  }

  get runId(): RunId {
    return this.#life.run.header.runId;
  }

  get rootRunId(): RunId {
    return this.#life.run.header.rootRunId;
  }

  get attempt(): number {
    return this.#life.run.attempt;
  }

  get user(): string | null {
    return this.#life.run.header.user;
  }

  get goal(): string | null {
    return this.#life.run.header.origin?.contract.goal ?? null;
  }

  get signal(): AbortSignal {
    return this.#life.signal;
  }

  tool<Out>(tool: Tool, input: unknown, options?: CallOptions): Promise<Out> {
    if (!this.#life.body.lists(tool)) return this.#unlisted("tool", tool.name, "tools");
    // The answer is what the tool returned, so it has the tool's own output type.
    return this.#life.issue(this.#site(options), tool.name, input) as Promise<Out>;
  }

  run<Out>(
    agent: AgentDefinition,
    input: unknown,
    options?: CallOptions & { readonly goal?: string },
  ): Promise<Out> {
    const { name } = agent;
    if (!this.#life.body.lists(agent)) return this.#unlisted("agent", name, "roster");
    const goal = options?.goal ?? `Do the work of ${name} on the given input.`;
    // The runtime checks a result against the agent's output schema before it becomes the answer.
    return this.#life.issue(this.#site(options), "agent_run", { agent: name, goal, input }) as Promise<Out>;
  }

  /** `never` stands for whatever the question's schema makes of the answer: the interface has the types. */
  ask(question: Question<unknown>, options?: CallOptions): Promise<never> {
    const { name, mayAsk } = this.#life.body;
    if (!mayAsk) {
      return refused(
        "INVALID_AGENT",
        `Agent "${name}" asks a question although it is not declared to.`,
        "Set `mayAsk: true`, so that whoever runs it in a parallel batch knows that it may wait.",
      );
    }
    let reader: SchemaReader;
    try {
      reader = questionSchema(name, question.schema);
    } catch (error) {
      return heard(Promise.reject(error as Error));
    }
    const site = this.#site(options);
    const { prompt, kind = "input_required", deadlineMs = null } = question;
    const answer = this.#life.issue(site, "ask", { kind, prompt, schema: reader.json, deadlineMs });
    const typed = isStandardSchema(question.schema) ? heard(converted(answer, site, reader)) : answer;
    return typed as Promise<never>;
  }

  sleep(ms: number, options?: CallOptions): Promise<void> {
    if (!(Number.isFinite(ms) && ms >= 0)) {
      return refused("INVALID_INPUT", `A sleep of ${ms} ms is not possible.`, "Use a number from 0 on.");
    }
    return heard(this.#life.issue(this.#site(options), "sleep", { ms }).then(() => undefined));
  }

  now(options?: CallOptions): Promise<number> {
    const call = this.#life.issue(this.#site(options), "now", null, (run) => run.now);
    return call as Promise<number>; // as recorded by the line above
  }

  random(options?: CallOptions): Promise<number> {
    const site = this.#site(options);
    // Derived, so that a seeded simulation repeats; the step keeps two lives of one Run apart.
    const call = this.#life.issue(
      site,
      "random",
      null,
      (run) =>
        Number.parseInt(sha256Hex(`random:${run.header.runId}:${run.stepsTaken}:${site}`).slice(0, 13), 16) /
        2 ** 52,
    );
    return call as Promise<number>; // as recorded by the line above
  }

  branch<T>(name: string, body: (ctx: FunctionContext) => T | Promise<T>): Promise<T> {
    if (this.#life.ended) return never();
    if (typeof name !== "string" || !/^[^/#]{1,100}$/.test(name)) {
      return refused(
        "INVALID_INPUT",
        `${JSON.stringify(name)} cannot name a branch.`,
        'Use 1 to 100 characters without "/" and "#".',
      );
    }
    this.#branches ??= new Set();
    if (this.#branches.has(name)) {
      return refused(
        "INVALID_INPUT",
        `Branch "${this.#path}${name}" was opened twice.`,
        "Give each branch a name of its own, with the item's id in it where it runs in a loop.",
      );
    }
    this.#branches.add(name);
    const context = new SessionContext(this.#life, `${this.#path}${name}/`);
    return heard(new Promise<T>((resolve) => resolve(body(context))));
  }

  continueAs(state: unknown): Promise<never> {
    return heard(this.#life.continueAs(state));
  }

  progress(message: string, fraction?: number): void {
    const { replaying, run, body } = this.#life;
    if (!replaying) run.emit({ kind: "progress", tool: body.name, message, fraction: fraction ?? null });
  }

  #site(options: CallOptions | undefined): string {
    return options?.key === undefined ? `${this.#path}${this.#ordinal++}` : `#${options.key}`;
  }

  #unlisted(what: "tool" | "agent", name: string, list: "tools" | "roster"): Promise<never> {
    return refused(
      "INVALID_AGENT",
      `Agent "${this.#life.body.name}" uses the ${what} "${name}" that it does not list.`,
      `Add this very ${what} to its \`${list}\`.`,
    );
  }
}

const questions = new WeakMap<object, SchemaReader>();

function questionSchema(agent: string, schema: unknown): SchemaReader {
  if (!isStandardSchema(schema)) {
    return readSchema(undefined, (schema as JsonSchema | undefined) ?? true, QUESTION(agent));
  }
  let reader = questions.get(schema);
  if (reader === undefined) {
    reader = readSchema(schema, undefined, QUESTION(agent));
    questions.set(schema, reader);
  }
  return reader;
}

const QUESTION = (agent: string) =>
  ({
    code: "INVALID_INPUT",
    of: `A question of agent "${agent}"`,
    option: "schema",
    jsonOption: "schema",
    side: "input",
  }) as const;

async function converted(answer: Promise<Json>, site: string, reader: SchemaReader): Promise<unknown> {
  const input = await answer;
  const parsed = await reader.parse(input);
  if (parsed.ok) return parsed.value;
  throw callFailed(
    { site, tool: "ask", input },
    { code: "answer_invalid", message: `The answer does not fit: ${parsed.message}.` },
  );
}
