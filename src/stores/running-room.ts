import { hasLimits, NO_LIMITS, type RunningLimits } from "../runtime/ports/running-limits.ts";

/** Which of a tenant's Runs may begin: its limits beside what runs. `Tree` is however a store names a tree. */
export class RunningRoom<Tree> {
  #limits: RunningLimits = NO_LIMITS;
  #isLimited = false;
  #total = 0;
  readonly #byTree = new Map<Tree, number>();
  readonly #byAgent = new Map<string, number>();

  get limits(): RunningLimits {
    return this.#limits;
  }

  set limits(limits: RunningLimits) {
    this.#limits = limits;
    this.#isLimited = hasLimits(limits);
  }

  get isLimited(): boolean {
    return this.#isLimited;
  }

  get total(): number {
    return this.#total;
  }

  add(tree: Tree, agent: string): void {
    this.#total += 1;
    raise(this.#byTree, tree, 1);
    raise(this.#byAgent, agent, 1);
  }

  remove(tree: Tree, agent: string): void {
    this.#total -= 1;
    raise(this.#byTree, tree, -1);
    raise(this.#byAgent, agent, -1);
  }

  ofTree(tree: Tree): number {
    return this.#byTree.get(tree) ?? 0;
  }

  byAgent(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#byAgent);
  }

  fits(tree: Tree, agent: string): boolean {
    return this.tenantHasRoom() && this.agentHasRoom(agent) && this.treeHasRoom(tree);
  }

  tenantHasRoom(): boolean {
    const { tenant } = this.#limits;
    return tenant === null || this.#total < tenant;
  }

  agentHasRoom(agent: string): boolean {
    const { agents } = this.#limits;
    const limit = Object.hasOwn(agents, agent) ? agents[agent] : undefined;
    return limit === undefined || (this.#byAgent.get(agent) ?? 0) < limit;
  }

  treeHasRoom(tree: Tree): boolean {
    const { tree: limit } = this.#limits;
    return limit === null || this.ofTree(tree) < limit;
  }

  /** The trees in which something runs and nothing more may begin. */
  fullTrees(): readonly Tree[] {
    return [...this.#byTree.keys()].filter((tree) => !this.treeHasRoom(tree));
  }
}

function raise<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
