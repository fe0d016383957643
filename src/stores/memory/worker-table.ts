import type { IncarnationId } from "../../domain/id.ts";
import type { WorkerRow } from "../../runtime/ports/store.ts";
import type { Mutable } from "./row.ts";

type Entry = Mutable<WorkerRow>;

/** The worker incarnations of one tenant. A dead one stays dead, whoever registers or beats again. */
export class WorkerTable {
  readonly #byId = new Map<IncarnationId, Entry>();
  readonly #alive = new Set<Entry>();

  /** False if the incarnation is known already. */
  register(given: Omit<WorkerRow, "heartbeatAt" | "dead">): boolean {
    const known = this.#byId.get(given.incarnation);
    if (known !== undefined) {
      if (!known.dead) {
        known.publications = [...given.publications];
        known.heartbeatAt = given.startedAt;
      }
      return false;
    }
    const { tenant, incarnation, name, host, pid, startedAt } = given;
    const publications = [...given.publications];
    const entry: Entry = {
      tenant,
      incarnation,
      name,
      host,
      pid,
      startedAt,
      heartbeatAt: startedAt,
      dead: false,
      publications,
    };
    this.#byId.set(incarnation, entry);
    this.#alive.add(entry);
    return true;
  }

  isAlive(incarnation: IncarnationId): boolean {
    return this.#byId.get(incarnation)?.dead === false;
  }

  beat(incarnation: IncarnationId, now: number): boolean {
    const entry = this.#byId.get(incarnation);
    if (entry === undefined || entry.dead) return false;
    entry.heartbeatAt = now;
    return true;
  }

  /** False if it was not alive. */
  end(incarnation: IncarnationId): boolean {
    const entry = this.#byId.get(incarnation);
    if (entry === undefined || entry.dead) return false;
    entry.dead = true;
    this.#alive.delete(entry);
    return true;
  }

  silentSince(time: number): IncarnationId[] {
    return [...this.#alive].filter((entry) => entry.heartbeatAt < time).map((entry) => entry.incarnation);
  }

  /** Forgets dead ones that have been silent since the time; to be asked for is as good as dead. */
  removeDead(time: number): void {
    for (const entry of this.#byId.values()) {
      if (entry.dead && entry.heartbeatAt < time) this.#byId.delete(entry.incarnation);
    }
  }

  list(): WorkerRow[] {
    return [...this.#byId.values()].map((entry) => ({ ...entry, publications: [...entry.publications] }));
  }
}
