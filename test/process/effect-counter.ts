import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** An effect as the outside process counted it. */
export interface OutsideEffect {
  readonly key: string;
  readonly tool: string;
  readonly requests: number;
}

/** The outside process, as seen from here. */
export interface EffectCounter {
  readonly url: string;
  /** What it was asked to do. */
  effects(): Promise<readonly OutsideEffect[]>;
  stop(): Promise<void>;
}

/** @param answerAfterMs how long it takes to answer, after it has counted */
export async function startEffectCounter(answerAfterMs = 150): Promise<EffectCounter> {
  const file = fileURLToPath(new URL("effect-counter.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, String(answerAfterMs)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    url,
    effects: async () => (await (await fetch(url)).json()) as readonly OutsideEffect[],
    async stop() {
      const gone = once(child, "close");
      child.stdin.end();
      await gone;
    },
  };
}
