import { ErrandError } from "../../src/domain/errand-error.ts";
import type { TenantId } from "../../src/domain/id.ts";
import { sha256Hex } from "../../src/rules/sha256.ts";
import type { Json } from "../../src/rules/json.ts";
import type { AgentDefinition } from "../../src/runtime/ports/agent.ts";
import type { Store } from "../../src/runtime/ports/store.ts";
import { createErrand } from "../../src/surfaces/library/create-errand.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import type { OpenTicket } from "../../src/runtime/host/resume-ticket.ts";
import type { SeededRandom } from "../../src/testing/seeded-random.ts";
import type { VirtualClock } from "../../src/testing/virtual-clock.ts";
import type { Intervention, RootPlan, Scenario } from "./scenario.ts";

export interface HostParts {
  readonly tenant: TenantId;
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly scenario: Scenario;
  readonly agents: readonly AgentDefinition[];
  readonly random: SeededRandom;
  readonly newId: () => string;
  /** Told of everything that a host should never see. */
  readonly problem: (what: string) => void;
}

/** The people and programs around the runtime: they start Runs, answer tickets, cancel, pause and let go on. */
export class SimulatedHost {
  readonly #parts: HostParts;
  readonly #door: Errand;
  readonly #byName: ReadonlyMap<string, AgentDefinition>;
  readonly #busy = new Set<Promise<void>>();
  readonly #started = new Set<string>();
  #toDo = 0;
  #closed = false;

  static async open(parts: HostParts): Promise<SimulatedHost> {
    const { store, agents, clock, tenant, newId } = parts;
    const door = await createErrand({ store, agents, tenant, worker: false, clock, ids: { next: newId } });
    return new SimulatedHost(parts, door);
  }

  private constructor(parts: HostParts, door: Errand) {
    this.#parts = parts;
    this.#door = door;
    this.#byName = new Map(parts.agents.map((agent) => [agent.name, agent]));
    for (const root of parts.scenario.roots) this.#later(root.atMs, () => this.#startInTurn(root));
    for (const one of parts.scenario.interventions) this.#later(one.atMs, () => this.#intervene(one));
    this.#answerAgain();
  }

  /** True once everything that the host meant to do is done. */
  get done(): boolean {
    return this.#toDo === 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#door.close();
  }

  #later(ms: number, work: () => Promise<void>): void {
    this.#toDo += 1;
    this.#parts.clock.timer(ms, () => {
      const done = this.#patiently(work).finally(() => {
        this.#toDo -= 1;
        this.#busy.delete(done);
      });
      this.#busy.add(done);
    });
  }

  /** Tries again while the store does not answer. */
  async #patiently(work: () => Promise<void>): Promise<void> {
    for (;;) {
      if (this.#closed) return;
      try {
        await work();
        return;
      } catch (error) {
        if (this.#closed) return;
        if (!ErrandError.is(error) || error.code !== "STORE_UNAVAILABLE") {
          this.#parts.problem(`the host met ${String(error)}`);
          return;
        }
        await this.#parts.clock.sleep(500);
      }
    }
  }

  /** The Runs of one thread are started one after the other, so that they queue in one order whatever goes wrong. */
  async #startInTurn(root: RootPlan): Promise<void> {
    const before = this.#parts.scenario.roots.filter(
      (one) => one.thread !== null && one.thread === root.thread,
    );
    while (before.some((one) => one.key < root.key && !this.#started.has(one.key))) {
      await this.#parts.clock.sleep(250);
    }
    await this.#start(root);
    this.#started.add(root.key);
  }

  async #start(root: RootPlan): Promise<void> {
    const agent = this.#byName.get(root.agent) as AgentDefinition<Json>;
    const { key, delayMs, priority, limits } = root;
    const thread = root.thread === null ? {} : { threadId: `thr_shared000${root.thread}` };
    const start = () =>
      this.#door.start(agent, { n: root.n }, { key, delayMs, priority, limits, user: "ada", ...thread });
    const [run, again] = await Promise.all([start(), root.sentTwice ? start() : null]);
    if (again !== null && again.runId !== run.runId) this.#parts.problem(`two runs for the key ${key}`);
  }

  async #intervene(one: Intervention): Promise<void> {
    const { store, tenant } = this.#parts;
    const rows = await store.listRuns(tenant, { order: "oldest", limit: 1_000 });
    const row = rows[one.which % Math.max(1, rows.length)];
    if (row === undefined) return;
    const requestId = `${one.do} ${one.atMs} ${row.runId}`;
    if (one.do === "cancel") {
      await this.#door.cancel(row.runId, { requestId });
    } else {
      await this.#door.pause(row.runId, { requestId });
      this.#later(one.forMs, async () => {
        await this.#door.continue(row.runId, { requestId: `go on ${requestId}` });
      });
    }
  }

  #answerAgain(): void {
    const { clock, random, scenario } = this.#parts;
    clock.timer(random.int(300, scenario.answersWithinMs), () => {
      if (this.#closed) return;
      void this.#answer()
        .catch((error: unknown) => {
          if (this.#closed || (ErrandError.is(error) && error.code === "STORE_UNAVAILABLE")) return;
          this.#parts.problem(`the host met ${String(error)} when it answered`);
        })
        .then(() => this.#answerAgain());
    });
  }

  async #answer(): Promise<void> {
    const { random, problem } = this.#parts;
    const tickets = await this.#door.tickets();
    for (const ticket of tickets) {
      if (random.chance(0.3)) continue;
      if (random.chance(0.1)) await this.#refused(ticket, "wrong", "TICKET_ANSWER_INVALID", undefined);
      const answer = answerTo(ticket);
      const decisionId = `decision ${ticket.ticketId}`;
      const target = await this.#target(ticket);
      try {
        const { runId, kind } = ticket;
        const first = await this.#door.resume(target, answer, { decisionId, runId, kind });
        if (first.runId !== runId) problem(`an answer to ${ticket.ticketId} went to ${first.runId}`);
        if (random.chance(0.3)) {
          const second = await this.#door.resume(ticket.ticketId, answer, { decisionId });
          if (!second.repeated) problem(`${ticket.ticketId} was decided twice`);
        }
        if (random.chance(0.2)) await this.#refused(ticket, answer, "TICKET_DECIDED", "another decision");
      } catch (error) {
        // Its Run was canceled or its deadline passed meanwhile, or another ticket of the tree was opened.
        if (
          !ErrandError.is(error) ||
          !["TICKET_CLOSED", "TICKET_REQUIRED", "TICKET_MISMATCH", "TICKET_DECIDED"].includes(error.code)
        )
          throw error;
      }
    }
  }

  /** The ticket itself, its owner, or a Run above that waits for it. */
  async #target(ticket: OpenTicket): Promise<string> {
    const { random, scenario } = this.#parts;
    // By Run alone an answer may meet the next ticket, and then the twin would hear another answer.
    if (scenario.repeatable || random.chance(0.5)) return ticket.ticketId;
    const below = await this.#door.tickets({ rootRunId: ticket.rootRunId });
    if (below.length > 1) return ticket.ticketId;
    return random.chance(0.5) ? ticket.runId : ticket.rootRunId;
  }

  async #refused(
    ticket: OpenTicket,
    answer: Json,
    code: string,
    decisionId: string | undefined,
  ): Promise<void> {
    try {
      await this.#door.resume(ticket.ticketId, answer, decisionId === undefined ? {} : { decisionId });
      this.#parts.problem(`${ticket.ticketId} took an answer that it should refuse with ${code}`);
    } catch (error) {
      if (!ErrandError.is(error)) throw error;
      if (error.code !== code && error.code !== "TICKET_CLOSED" && error.code !== "TICKET_DECIDED")
        throw error;
    }
  }
}

/** The same ticket gets the same answer, whatever happened before. */
function answerTo(ticket: OpenTicket): Json {
  const chance = Number.parseInt(sha256Hex(ticket.ticketId).slice(0, 4), 16);
  return ticket.kind === "approval"
    ? { approved: chance % 4 !== 0, reason: "so I say" }
    : { value: chance % 100 };
}
