import { afterEach, describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import {
  type Hostility,
  type LoopbackPeer,
  type LoopbackWork,
  startLoopbackPeer,
} from "../../../test/support/loopback-peer.ts";
import { Recorder } from "../../../test/support/recorder.ts";
import { spawnLoopbackPeer } from "../../../test/support/spawn-peer.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { RunId } from "../../domain/id.ts";
import type { Json } from "../../rules/json.ts";
import type { AgentDefinition } from "../../runtime/ports/agent.ts";
import type { Move } from "../../runtime/ports/carrier.ts";
import type { RemoteAgentPort, RemoteStatus } from "../../runtime/ports/remote-agent.ts";
import { httpRemoteAgent } from "./http-remote-agent.ts";
import { type RemoteAgentOptions, remoteAgent } from "./remote-agent.ts";

const peers: AsyncDisposable[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer[Symbol.asyncDispose]();
});
const peerOf = async (hostility: Hostility = {}): Promise<LoopbackPeer> => {
  const peer = await startLoopbackPeer(hostility);
  peers.push(peer);
  return peer;
};
const live = (): AbortSignal => new AbortController().signal;
const RUN = "run_00000001" as RunId;

type Options = Partial<RemoteAgentOptions<never, never>>;
const agentOf = (port: RemoteAgentPort, more: Options = {}): AgentDefinition =>
  remoteAgent({ name: "far", port, inputSchema: true, outputSchema: true, ...(more as object) });
const over = (url: string, more: object = {}) => httpRemoteAgent({ baseUrl: url, ...more });

/** Carries a remote Run as a runtime would; a fresh session for every move if `crashing`. */
async function carry(
  agent: AgentDefinition,
  work: LoopbackWork,
  { crashing = false, answer = (prompt: string): Json => `re: ${prompt}` } = {},
): Promise<{ move: Move; moves: Move[]; asked: string[] }> {
  const recorder = new Recorder();
  recorder.input = work as Json;
  const moves: Move[] = [];
  const asked: string[] = [];
  let session = agent.open();
  let note: Json = null;
  let given: Json | undefined;
  for (;;) {
    const move = await session.next({ ...recorder.context(), note, answer: given }, live());
    moves.push(move);
    given = undefined;
    if (move.kind === "wait" || move.kind === "ask") note = move.note;
    if (move.kind === "ask") {
      asked.push(move.prompt);
      given = answer(move.prompt);
    } else if (move.kind !== "wait") return { move, moves, asked };
    if (crashing) session = agent.open();
  }
}

describe("a remote agent over HTTP", () => {
  it("L13 parks between polls, ever longer, and ends with the peer's result", async () => {
    const peer = await peerOf();
    const agent = agentOf(over(peer.url), { pollMs: 10, maxPollMs: 35 });
    const { move, moves } = await carry(agent, { polls: 4, output: { ok: 1 } });
    expect(move).toMatchObject({
      kind: "complete",
      output: { ok: 1 },
      usage: { inputTokens: 3, toolCalls: 0 },
    });
    expect(moves.flatMap((one) => (one.kind === "wait" ? one.pollInMs : []))).toEqual([10, 20, 35, 35]);
    expect(agent.open().prompt(new Recorder().context())).toEqual([]);
  });

  it("K20.2 K20.3 puts each question to a person once and answers the same work", async () => {
    const peer = await peerOf();
    const { move, asked } = await carry(agentOf(over(peer.url)), { asks: ["Which?", "Sure?"] });
    expect(asked).toEqual(["Which?", "Sure?"]);
    expect(move).toMatchObject({ kind: "complete", output: { answers: ["re: Which?", "re: Sure?"] } });
    expect(peer.stats().works).toBe(1);
  });

  it.each<[string, Hostility]>([
    ["repeats every request", { duplicate: true }],
    ["loses every second reply", { dropEvery: 2 }],
    ["is overloaded every third time", { refuseEvery: 3 }],
    ["is slow", { delayMs: 5 }],
    ["asks answered questions again", { repeatQuestions: 2 }],
    ["does all of that", { duplicate: true, dropEvery: 3, refuseEvery: 4, delayMs: 1, repeatQuestions: 1 }],
  ])(
    "K20.1 starts one piece of work at a peer that %s, though we crash after every move",
    async (_what, hostility) => {
      const peer = await peerOf(hostility);
      const work: LoopbackWork = { polls: 3, asks: ["a?", "b?"] };
      const { move, asked } = await carry(agentOf(over(peer.url)), work, { crashing: true });
      expect(move).toMatchObject({ kind: "complete", output: { answers: ["re: a?", "re: b?"] } });
      expect(asked).toEqual(["a?", "b?"]);
      expect(peer.stats().works).toBe(1);
    },
  );

  it("starts one piece of work when the first start was never noted", async () => {
    const peer = await peerOf();
    const agent = agentOf(over(peer.url));
    for (let i = 0; i < 3; i++) await agent.open().next(new Recorder().context(), live());
    expect(peer.stats().works).toBe(1);
  });

  it("keeps the first end, whatever the peer says later", async () => {
    const peer = await peerOf({ contradict: true });
    const session = agentOf(over(peer.url)).open();
    const first = await session.next(new Recorder().context(), live());
    expect(first).toMatchObject({ kind: "complete" });
    expect(await session.next(new Recorder().context(), live())).toEqual(first);
  });

  it("ends failed by the peer's own failure, once and for all", async () => {
    const peer = await peerOf();
    const { move } = await carry(agentOf(over(peer.url)), { fail: { code: "no_data", message: "None." } });
    expect(move).toMatchObject({
      kind: "fail",
      retryable: false,
      error: { code: "no_data", message: "None." },
    });
  });

  it("ends indeterminate when the peer has forgotten the work, and starts no other", async () => {
    const peer = await peerOf({ forgetAfter: 2 });
    const { move } = await carry(agentOf(over(peer.url)), { polls: 9 });
    expect(move).toMatchObject({ kind: "end", end: { kind: "indeterminate", reason: "remote_lost" } });
    expect(peer.stats().works).toBe(1);
  });

  it("runs against a peer in a process of its own", async () => {
    const peer = await spawnLoopbackPeer({ dropEvery: 2 });
    peers.push(peer);
    const { move } = await carry(agentOf(over(peer.url)), { polls: 2, asks: ["?"] }, { crashing: true });
    expect(move).toMatchObject({ kind: "complete", output: { answers: ["re: ?"] } });
    expect((await peer.stats()).works).toBe(1);
  });

  it("converts what its output schema converts, and refuses the rest", async () => {
    const peer = await peerOf();
    const agent = remoteAgent({
      name: "far",
      port: over(peer.url),
      inputSchema: true,
      output: z.object({ n: z.number(), d: z.string().default("d") }),
    });
    expectTypeOf(agent).toEqualTypeOf<AgentDefinition<Json, { n: number; d: string }>>();
    expect((await carry(agent, { output: { n: 1, x: 2 } })).move).toMatchObject({ output: { n: 1, d: "d" } });
    const { move } = await carry(agentOf(over((await peerOf()).url), { output: z.number() as never }), {});
    expect(move).toMatchObject({ kind: "fail", retryable: false, error: { code: "output_invalid" } });
  });
});

describe("trouble on the way", () => {
  it.each<[string, Hostility, RegExp]>([
    ["refuses our credentials", { respond: 401 }, /HTTP 401.*credentials in `headers`/s],
    ["does not serve the path", { respond: 404 }, /HTTP 404.*`baseUrl`/s],
    ["refuses the request", { respond: 422 }, /HTTP 422.*as you like.*change what it complains about/s],
    ["redirects", { respond: 302 }, /HTTP 302.*final address/s],
    ["is a web page", { babble: "<html>hello</html>" }, /<html>hello.*speaks this protocol/s],
    ["says half a status", { babble: '{"kind":"completed"}' }, /no status of a run/],
  ])("fails for good, with the remedy, when the peer %s", async (_what, hostility, message) => {
    const peer = await peerOf(hostility);
    const { move } = await carry(
      agentOf(over(peer.url, { headers: { authorization: "Bearer s3cret" } })),
      {},
    );
    expect(move).toMatchObject({ kind: "fail", retryable: false, error: { code: "adapter_configuration" } });
    const text = move.kind === "fail" ? move.error.message : "";
    expect(text).toMatch(message);
    expect(text).not.toContain("s3cret");
    expect(peer.stats().requests).toBe(1);
  });

  it.each<[string, Hostility]>([
    ["is overloaded", { respond: 503 }],
    ["limits us", { respond: 429 }],
    ["loses every reply", { dropEvery: 1 }],
    ["does not answer in time", { delayMs: 200 }],
  ])("tries again later when the peer %s", async (_what, hostility) => {
    const peer = await peerOf(hostility);
    const { move } = await carry(agentOf(over(peer.url, { retries: 1, timeoutMs: 50 })), {});
    expect(move).toMatchObject({ kind: "fail", retryable: true, error: { code: "adapter_connection" } });
    expect(move.kind === "fail" ? move.error.message : "").toMatch(/failed 2 times/);
  });

  it("tries again later when nobody listens", async () => {
    const peer = await startLoopbackPeer();
    await peer[Symbol.asyncDispose]();
    const { move } = await carry(agentOf(over(peer.url, { retries: 0 })), {});
    expect(move).toMatchObject({ kind: "fail", retryable: true, error: { code: "adapter_connection" } });
  });

  it("sends an answer again that a failed attempt could not deliver, and asks nobody twice", async () => {
    const peer = await peerOf();
    const agent = agentOf(over(peer.url));
    const context = { ...new Recorder().context(), input: { asks: ["?"] } as Json };
    const asked = await agent.open().next(context, live());
    const note = asked.kind === "ask" ? asked.note : null;
    const broken = {
      ...over(peer.url),
      answer: () => Promise.reject(new ErrandError("ADAPTER_CONNECTION", "No.", "Wait.")),
    };
    const answered = { ...context, note, answer: "yes" };
    expect(await agentOf(broken).open().next(answered, live())).toMatchObject({
      kind: "fail",
      retryable: true,
    });
    expect(await agent.open().next(answered, live())).toMatchObject({ output: { answers: ["yes"] } });
  });

  it("rejects with the reason when its Run is taken away, in the middle of a request or a pause", async () => {
    for (const hostility of [{ delayMs: 500 }, { respond: 503 }]) {
      const peer = await peerOf(hostility);
      const controller = new AbortController();
      const move = agentOf(over(peer.url)).open().next(new Recorder().context(), controller.signal);
      setTimeout(() => controller.abort(new Error("claim lost")), 20);
      await expect(move).rejects.toThrow("claim lost");
    }
  });

  it("refuses an address that holds credentials", () => {
    for (const baseUrl of ["ftp://x", "nonsense", "http://a:b@x", "http://x?key=1"]) {
      expect(() => httpRemoteAgent({ baseUrl })).toThrow(/INVALID_CONFIG/);
    }
  });
});

describe("cancel", () => {
  const started = async (peer: LoopbackPeer, work: LoopbackWork) => {
    const agent = agentOf(over(peer.url), { pollMs: 5 });
    const context = { ...new Recorder().context(), input: work as Json };
    const move = await agent.open().next(context, live());
    return { agent, context: { ...context, note: "note" in move ? move.note : null } };
  };

  it("K20.4 is confirmed by the peer, which closes its question with it", async () => {
    const peer = await peerOf();
    const { agent, context } = await started(peer, { asks: ["?"] });
    expect(peer.stats().openQuestions).toEqual(["q1"]);
    expect(await agent.open().cancel?.(context, "no longer needed")).toBe("confirmed");
    expect(peer.stats().openQuestions).toEqual([]);
    expect(await agent.open().next(context, live())).toMatchObject({
      kind: "end",
      end: { kind: "canceled", reason: "no longer needed" },
    });
  });

  it("K20.5 refuses an answer to another question than the open one", async () => {
    const peer = await peerOf();
    const { agent, context } = await started(peer, { asks: ["one?", "two?"] });
    await agent.open().next({ ...context, answer: "1" }, live());
    await expect(over(peer.url).answer(RUN, "q1", "other", live())).rejects.toThrow(/HTTP 409/);
    expect(peer.stats().answers[RUN]).toEqual({ q1: "1" });
  });

  it("is unconfirmed when the peer goes on, has lost the work or cannot be reached", async () => {
    const stubborn = await peerOf({ ignoreCancel: true });
    const one = await started(stubborn, { polls: 99 });
    const before = stubborn.stats().requests;
    expect(await one.agent.open().cancel?.(one.context, "x")).toBe("unconfirmed");
    expect(stubborn.stats().requests - before).toBe(4);
    const forgetful = await peerOf({ forgetAfter: 1 });
    const two = await started(forgetful, { polls: 99 });
    expect(await two.agent.open().cancel?.(two.context, "x")).toBe("unconfirmed");
    const dead = await startLoopbackPeer();
    const three = await started(dead, { polls: 99 });
    await dead[Symbol.asyncDispose]();
    const unreachable = agentOf(over(dead.url, { retries: 0 }));
    expect(await unreachable.open().cancel?.(three.context, "x")).toBe("unconfirmed");
  });

  it("is confirmed for work that never reached the peer, and for work that has ended", async () => {
    const peer = await peerOf();
    expect(await agentOf(over(peer.url)).open().cancel?.(new Recorder().context(), "x")).toBe("confirmed");
    const { agent, context } = await started(peer, { polls: 1, output: 1 });
    await agent.open().next(context, live());
    expect(await agent.open().cancel?.(context, "x")).toBe("confirmed");
  });
});

describe("defining a remote agent", () => {
  const port = over("http://127.0.0.1:1");

  it("publishes its version and schemas, and no address", () => {
    const agent = agentOf(port, { version: "2" });
    expect(agent).toMatchObject({ kind: "remote", mayAsk: true, maxAttempts: 5, tools: [], roster: [] });
    expect(agent.definition).toMatchObject({ kind: "remote", name: "far", version: "2", remoteName: "far" });
    expect(JSON.stringify(agent.definition)).not.toContain("127.0.0.1");
  });

  it.each<[string, Options]>([
    ["no port", { port: undefined }],
    ["no pause", { pollMs: 0 }],
    ["no schema", { outputSchema: undefined }],
  ])("refuses %s", (_what, more) => {
    expect(() => agentOf(port, more)).toThrow(/INVALID_AGENT/);
  });

  it("takes what a port throws by itself for a passing failure", async () => {
    const fail = (): Promise<RemoteStatus> => Promise.reject(new Error("bug"));
    const { move } = await carry(agentOf({ ...port, start: fail }), {});
    expect(move).toMatchObject({ kind: "fail", retryable: true, error: { code: "adapter_error" } });
  });
});
