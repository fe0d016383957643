import { functionAgent } from "../../src/agents/function/function-agent.ts";
import type { FunctionContext } from "../../src/agents/function/function-context.ts";
import { modelAgent } from "../../src/agents/model/model-agent.ts";
import {
  type ScriptedCall,
  type ScriptedView,
  scriptedModel,
} from "../../src/agents/model/scripted-model.ts";
import { ErrandError } from "../../src/domain/errand-error.ts";
import type { Json } from "../../src/rules/json.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { Clock } from "../../src/runtime/ports/clock.ts";
import { type DefinedTool, defineTool } from "../../src/tools/define-tool.ts";
import { ToolFailure } from "../../src/tools/tool-failure.ts";
import type { FakeService } from "./fake-service.ts";
import {
  type AgentPlan,
  type Scenario,
  type Statement,
  TOOLS,
  type ToolInput,
  type ToolName,
} from "./scenario.ts";

type Tools = Readonly<Record<ToolName, DefinedTool<Json, Json>>>;
type Answer = Json;

/** The agents of a scenario, ready to be published; those above come after those in their rosters. */
export function buildAgents(scenario: Scenario, clock: Clock, service: FakeService): AgentDefinition[] {
  const tools = buildTools(scenario, clock, service);
  const built = new Map<string, AgentDefinition>();
  for (const plan of scenario.agents) {
    const roster = plan.roster.map((name) => built.get(name) as AgentDefinition);
    const definition =
      plan.kind === "model" ? model(plan, scenario, tools, roster) : durable(plan, scenario, tools, roster);
    built.set(plan.name, plan.liar ? lying(definition) : definition);
  }
  return [...built.values()];
}

function buildTools(scenario: Scenario, clock: Clock, service: FakeService): Tools {
  const pause = (ms: number, signal: AbortSignal, stubborn: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal.aborted && !stubborn) return reject(signal.reason as Error);
      if (ms === 0) return resolve();
      clock.timer(ms, () => (signal.aborted && !stubborn ? reject(signal.reason as Error) : resolve()));
    });
  const entries = (Object.keys(TOOLS) as ToolName[]).map((name) => {
    const { replay, effect, parallel, approval } = TOOLS[name];
    const work = async (given: Json, key: string, signal: AbortSignal): Promise<Json> => {
      const input = given as unknown as ToolInput;
      await pause(input.beforeMs, signal, input.stubborn);
      service.request(key, name, replay);
      await pause(input.afterMs, signal, input.stubborn);
      if (input.fails) throw new ToolFailure("refused_by_service", `no ${input.x}`);
      return { twice: input.x * 2 };
    };
    const tool = defineTool<never, Json>({
      name,
      description: `Does ${name}.`,
      inputSchema: { type: "object" },
      replay,
      effect,
      parallel,
      approval,
      maxExecutions: scenario.repeatable ? 1_000 : 3,
      run: (input, context, signal) => work(input as Json, context.effectKey, signal),
      ...(replay === "durable"
        ? { reconnect: (input: Json, context, signal) => work(input, context.effectKey, signal) }
        : {}),
    } as Parameters<typeof defineTool<never, Json>>[0]);
    return [name, tool] as const;
  });
  return Object.fromEntries(entries) as unknown as Tools;
}

function usedTools(plan: AgentPlan, tools: Tools): DefinedTool<Json, Json>[] {
  const names = new Set<ToolName>();
  const look = (statement: Statement): void => {
    if (statement.do === "tool") names.add(statement.tool);
    else if (statement.do === "together") statement.of.forEach(look);
  };
  plan.program.forEach(look);
  return [...names].map((name) => tools[name]);
}

function durable(
  plan: AgentPlan,
  scenario: Scenario,
  tools: Tools,
  roster: readonly AgentDefinition[],
): AgentDefinition {
  const byName = new Map(roster.map((agent) => [agent.name, agent]));
  const play = async (
    ctx: FunctionContext<Json>,
    statements: readonly Statement[],
    again: boolean,
  ): Promise<Answer[]> => {
    const answers: Answer[] = [];
    for (const statement of statements) answers.push(await outcome(() => one(ctx, statement, again)));
    return answers;
  };
  const one = async (ctx: FunctionContext<Json>, statement: Statement, again: boolean): Promise<Answer> => {
    switch (statement.do) {
      case "tool":
        return ctx.tool(tools[statement.tool], statement.input);
      case "run":
        return (await ctx.run(byName.get(statement.agent) as AgentDefinition, { n: statement.n })) as Json;
      case "sleep":
        await ctx.sleep(statement.ms);
        return "slept";
      case "ask":
        return ctx.ask({
          prompt: "How many?",
          schema: ANSWER_SCHEMA,
          ...(statement.deadlineMs === null ? {} : { deadlineMs: statement.deadlineMs }),
        });
      case "chance":
        await ctx.now();
        return ctx.random();
      case "together":
        return Promise.all(
          statement.of.map((part, at) =>
            statement.branches
              ? ctx.branch(`part ${at}`, (branch) => outcome(() => one(branch, part, again)))
              : outcome(() => one(ctx, part, again)),
          ),
        );
      case "throw":
        if (ctx.attempt <= statement.upTo) throw new Error(`attempt ${ctx.attempt} fails`);
        return "did not throw";
      case "again":
        return again ? ctx.continueAs({ again: true }) : "went on";
      case "nonsense":
        return null;
      default:
        return statement satisfies never;
    }
  };
  return functionAgent({
    name: plan.name,
    version: "1",
    inputSchema: true,
    outputSchema: true,
    tools: usedTools(plan, tools),
    roster,
    mayAsk: plan.mayAsk,
    maxSteps: plan.maxSteps,
    onUnexpectedAwait: scenario.continueOnAwait ? "continue" : "indeterminate",
    run: async (ctx, input) => {
      const fresh = (input as { readonly again?: boolean }).again !== true;
      return { agent: plan.name, answers: await branchesOnce(ctx, plan.program, fresh, play) };
    },
  }) as AgentDefinition;
}

/** Branch names are used once a Run, so every `together` gets a branch of its own. */
async function branchesOnce(
  ctx: FunctionContext<Json>,
  program: readonly Statement[],
  again: boolean,
  play: (ctx: FunctionContext<Json>, statements: readonly Statement[], again: boolean) => Promise<Answer[]>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const [at, statement] of program.entries()) {
    const scoped = statement.do === "together" && statement.branches;
    const part = scoped
      ? await ctx.branch(`at ${at}`, (branch) => play(branch, [statement], again))
      : await play(ctx, [statement], again);
    answers.push(...part);
  }
  return answers;
}

/** A failed call is an answer like any other; anything else ends the attempt. */
async function outcome(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (!ErrandError.is(error) || error.code !== "CALL_FAILED") throw error;
    return `failed: ${String(error.details["code"])}`;
  }
}

export const ANSWER_SCHEMA = {
  type: "object",
  properties: { value: { type: "integer" } },
  required: ["value"],
  additionalProperties: false,
} as const;

function model(
  plan: AgentPlan,
  scenario: Scenario,
  tools: Tools,
  roster: readonly AgentDefinition[],
): AgentDefinition {
  const turns = plan.program.filter((statement) => statement.do !== "throw");
  const throwing = plan.program.find((statement) => statement.do === "throw");
  const failures = new Map<string, number>();
  return modelAgent({
    name: plan.name,
    instructions: "Follow the script.",
    inputSchema: true,
    outputSchema: { type: "string" },
    tools: usedTools(plan, tools),
    roster,
    mayAsk: plan.mayAsk,
    maxSteps: plan.maxSteps,
    onUnexpectedAwait: scenario.continueOnAwait ? "continue" : "indeterminate",
    model: scriptedModel(
      (view: ScriptedView) => {
        // Turns since the Run's own prompt: the thread may have had others before.
        const prompted = view.prompt.findLastIndex((message) => message.role === "user");
        const step = view.prompt.slice(prompted).filter((message) => message.role === "assistant").length;
        const place = `${view.userText}:${step}`;
        const failed = failures.get(place) ?? 0;
        if (throwing?.do === "throw" && step === 0 && failed < throwing.upTo) {
          failures.set(place, failed + 1);
          return { error: { status: failed === 0 ? 429 : 500, retryAfter: 2 } };
        }
        const turn = turns[step];
        if (turn === undefined) return JSON.stringify(view.toolResults.map(({ tool, ok }) => [tool, ok]));
        return { text: `turn ${step}`, chunks: 1, calls: scriptedCalls(turn) };
      },
      { modelId: `script of ${plan.name}` },
    ),
  }) as AgentDefinition;
}

function scriptedCalls(statement: Statement): ScriptedCall[] {
  switch (statement.do) {
    case "tool":
      return [{ tool: statement.tool, input: statement.input }];
    case "run":
      return [
        { tool: "agent_run", input: { agent: statement.agent, goal: "do it", input: { n: statement.n } } },
      ];
    case "ask":
      return [{ tool: "ask", input: { prompt: "How many?", schema: ANSWER_SCHEMA } }];
    case "together":
      return statement.of.flatMap(scriptedCalls);
    case "nonsense":
      return [
        { tool: "agent_run", rawInput: "{nonsense" },
        { tool: "no_such_tool", input: {} },
      ];
    case "sleep":
    case "chance":
    case "again":
    case "throw":
      return [];
    default:
      return statement satisfies never;
  }
}

/** The same agent, which first asks a question although its definition says that it cannot. */
function lying(definition: AgentDefinition): AgentDefinition {
  return {
    ...definition,
    open() {
      const session = definition.open();
      return {
        ...session,
        prompt: (context) => session.prompt(context),
        dispose: () => session.dispose(),
        next: async (context, signal) =>
          context.note === "asked"
            ? session.next(context, signal)
            : { kind: "ask", ticketKind: "blocked", prompt: "May I?", schema: ANSWER_SCHEMA, note: "asked" },
      };
    },
  };
}
