import { z } from "zod";
import { type DefinedTool, type ToolOptions, defineTool } from "../../src/tools/define-tool.ts";

/** A door in a test's way: what waits at it goes on once it is open. */
export class Gate {
  readonly passed: Promise<void>;
  open: () => void = () => undefined;
  /** How many have come to the door. */
  arrivals = 0;

  constructor() {
    this.passed = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  wait(): Promise<void> {
    this.arrivals += 1;
    return this.passed;
  }
}

/** A service outside that counts what is done to it, by name and by effect key. */
export class Outside {
  readonly done: string[] = [];
  readonly keys: string[] = [];

  count(name: string): number {
    return this.done.filter((one) => one === name).length;
  }

  /** A tool `name({ id })` whose every run counts as `name:id` before `after` is waited for. */
  tool(
    name: string,
    options: Partial<ToolOptions<typeof INPUT, string>> & { readonly after?: (id: string) => unknown } = {},
  ): DefinedTool<{ id: string }, string> {
    const { after, ...rest } = options;
    return defineTool({
      name,
      description: `Does ${name} outside.`,
      input: INPUT,
      replay: "never",
      effect: "any",
      ...rest,
      run: async ({ id }, context) => {
        this.done.push(`${name}:${id}`);
        this.keys.push(context.effectKey);
        await after?.(id);
        return `${name} ${id}`;
      },
    });
  }
}

const INPUT = z.object({ id: z.string() });
