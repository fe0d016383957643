import { expect, test } from "vitest";
import { functionAgent } from "../../agents/function/function-agent.ts";
import { defineConfig } from "./define-config.ts";

const agent = functionAgent({
  name: "hello",
  version: "1",
  inputSchema: true,
  outputSchema: true,
  run: () => "hello",
});

test("a config that is right comes back as it is", () => {
  const config = { store: "x.db", agents: [agent], tenant: "acme", worker: { concurrency: 2, name: "w" } };
  expect(defineConfig(config)).toBe(config);
});

test.each([
  [null, "The config is null"],
  [{ agent: [] }, 'has a field "agent"'],
  [{ store: 5 }, "`store` of the config is 5"],
  [{ store: "" }, '`store` of the config is ""'],
  [{ agents: {} }, "`agents` of the config is an object"],
  [{ agents: [agent, undefined] }, "`agents[1]` of the config is undefined"],
  [{ agents: [() => agent] }, "`agents[0]` of the config is a function"],
  [{ tenant: "a b" }, '`tenant` of the config is "a b"'],
  [{ worker: 4 }, "`worker` of the config is 4"],
  [{ worker: { concurrency: 0 } }, "`worker.concurrency` of the config is 0"],
  [{ worker: { threads: 4 } }, '`worker` of the config has a field "threads"'],
  [{ settings: { cancelGraceMs: "5s" } }, '`settings.cancelGraceMs` of the config is "5s"'],
])("%j is refused with the field's name", (config, message) => {
  expect(() => defineConfig(config as never)).toThrow(message);
  expect(() => defineConfig(config as never)).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
});
