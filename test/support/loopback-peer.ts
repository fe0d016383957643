import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { canonicalJson } from "../../src/rules/canonical-json.ts";
import type { Json } from "../../src/rules/json.ts";

/** What a piece of work does, told by its input: everything is counted in requests, so no test waits for time. */
export interface LoopbackWork {
  /** Polls that find it working before it goes on. */
  readonly polls?: number;
  /** Questions it asks one after another; the answers are in its output. */
  readonly asks?: readonly string[];
  readonly output?: Json;
  readonly fail?: { readonly code: string; readonly message: string };
}

/** How the peer and the network in front of it misbehave. Requests count from 1 over the peer's life. */
export interface Hostility {
  /** Every request is carried out twice, as by a network that repeats it. */
  readonly duplicate?: boolean;
  readonly delayMs?: number;
  /** Of every so many requests one is carried out and its reply lost with the socket. */
  readonly dropEvery?: number;
  /** Of every so many requests one is refused with 503 before anything is done. */
  readonly refuseEvery?: number;
  /** Once an end was reported, later polls report another one. */
  readonly contradict?: boolean;
  /** Forgets a run after so many requests for it. */
  readonly forgetAfter?: number;
  /** A canceled run goes on as if nothing had been said. */
  readonly ignoreCancel?: boolean;
  /** Asks an answered question this many times more. */
  readonly repeatQuestions?: number;
  /** Answers everything with this status and a body that is no status. */
  readonly respond?: number;
  /** Answers everything 200 with this body. */
  readonly babble?: string;
}

interface Work {
  readonly started: string;
  readonly plan: LoopbackWork;
  readonly answers: Map<string, string>;
  requests: number;
  polls: number;
  repeats: number;
  ends: number;
  canceled: string | null;
}

export interface PeerStats {
  readonly requests: number;
  /** Pieces of work that were begun; a repeat of a start begins none. */
  readonly works: number;
  readonly answers: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly openQuestions: readonly string[];
}

export interface LoopbackPeer extends AsyncDisposable {
  readonly url: string;
  stats(): PeerStats;
}

/** A peer that speaks the protocol of `httpRemoteAgent` on the loopback interface. `GET /stats` tells what it did. */
export async function startLoopbackPeer(hostility: Hostility = {}, port = 0): Promise<LoopbackPeer> {
  const works = new Map<string, Work>();
  let requests = 0;
  let begun = 0;

  const stats = (): PeerStats => ({
    requests,
    works: begun,
    answers: Object.fromEntries(
      [...works].map(([id, work]) => [
        id,
        Object.fromEntries(
          [...work.answers].map(([question, answer]) => [question, JSON.parse(answer) as Json]),
        ),
      ]),
    ),
    openQuestions: [...works.values()].flatMap((work) => openQuestion(work) ?? []),
  });

  function carryOut(method: string, path: readonly string[], body: Json): [number, Json] {
    const [, id = "", part, questionId = ""] = path;
    let work = works.get(id);
    if (method === "PUT") {
      const started = canonicalJson(body);
      if (work !== undefined && work.started !== started) return [409, "other work has this id"];
      if (work === undefined) {
        const plan = ((body as { input?: Json }).input ?? {}) as LoopbackWork;
        work = {
          started,
          plan,
          answers: new Map(),
          requests: 0,
          polls: 0,
          repeats: 0,
          ends: 0,
          canceled: null,
        };
        works.set(id, work);
        begun++;
      }
    }
    if (work === undefined || ++work.requests > (hostility.forgetAfter ?? Infinity))
      return [404, { kind: "unknown" }];
    if (method === "POST" && part === "cancel" && hostility.ignoreCancel !== true) {
      work.canceled ??= (body as { reason: string }).reason;
    }
    if (method === "POST" && part === "answers") {
      const answer = canonicalJson((body as { answer: Json }).answer);
      const given = work.answers.get(questionId);
      if (given !== undefined && given !== answer) return [409, "another answer was given"];
      if (given === undefined && openQuestion(work) !== questionId) return [409, "no such question is open"];
      if (given === undefined) work.repeats = hostility.repeatQuestions ?? 0;
      work.answers.set(questionId, answer);
    }
    if (method === "GET") work.polls++;
    return [200, status(work, method)];
  }

  function status(work: Work, method: string): Json {
    const { plan, answers } = work;
    if (work.canceled !== null) return { kind: "canceled", reason: work.canceled };
    if (method === "GET" && work.repeats > 0) {
      work.repeats--;
      return question(`q${answers.size}`, plan);
    }
    const open = openQuestion(work);
    if (open !== null) return question(open, plan);
    if (work.polls < (plan.polls ?? 0)) return { kind: "working", detail: `poll ${work.polls}` };
    if (hostility.contradict === true && work.ends++ > 0) {
      return { kind: "failed", error: { code: "changed_mind", message: "It was not done after all." } };
    }
    if (plan.fail !== undefined) return { kind: "failed", error: { ...plan.fail } };
    const given = [...answers.values()].map((answer) => JSON.parse(answer) as Json);
    return {
      kind: "completed",
      output: plan.output ?? { answers: given },
      usage: { inputTokens: 3, outputTokens: 4, modelCalls: 1 },
    };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const path = (request.url ?? "/").split("/").slice(1).map(decodeURIComponent);
    const reply = (code: number, body: Json): void => {
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (path[0] === "stats") return reply(200, stats() as unknown as Json);
    const nth = ++requests;
    if (hostility.delayMs !== undefined) await pause(hostility.delayMs);
    if (hostility.respond !== undefined) return reply(hostility.respond, "as you like");
    if (hostility.babble !== undefined) return void response.writeHead(200).end(hostility.babble);
    if (hostility.refuseEvery !== undefined && nth % hostility.refuseEvery === 0) return reply(503, "busy");
    const body = text === "" ? null : (JSON.parse(text) as Json);
    let [code, said] = carryOut(request.method ?? "GET", path, body);
    if (hostility.duplicate === true) [code, said] = carryOut(request.method ?? "GET", path, body);
    if (hostility.dropEvery !== undefined && nth % hostility.dropEvery === 0)
      return void request.socket.destroy();
    return reply(code, said);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stats,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function openQuestion(work: Work): string | null {
  const asked = work.plan.asks?.length ?? 0;
  return work.canceled === null && work.answers.size < asked ? `q${work.answers.size + 1}` : null;
}

function question(questionId: string, plan: LoopbackWork): Json {
  const prompt = plan.asks?.[Number(questionId.slice(1)) - 1] ?? "";
  return { kind: "input_required", questionId, prompt, schema: { type: "string" } };
}
