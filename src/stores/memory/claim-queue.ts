import type { PublicationRef, RunId } from "../../domain/id.ts";
import { agentOf } from "../../runtime/ports/running-limits.ts";
import type { RunningRoom } from "../running-room.ts";
import { Heap, HeapNode } from "./heap.ts";

/** A minute of waiting is worth one step of priority, so low priority is late but never starved. */
const PRIORITY_STEP_MS = 60_000;

/** A Run's two places in the queue: by the time it is due, and among the due ones of its group by claim key. */
export class QueuePlace<T> {
  readonly byDue: HeapNode<T>;
  readonly byKey: HeapNode<T>;
  readonly publication: PublicationRef;
  readonly tree: RunId;
  readonly priority: number;
  /** Where `byKey` stands while the Run is due. */
  group: Group<T> | null = null;

  constructor(item: T, order: number, publication: PublicationRef, tree: RunId, priority: number) {
    this.byDue = new HeapNode(item, order);
    this.byKey = new HeapNode(item, order);
    this.publication = publication;
    this.tree = tree;
    this.priority = priority;
  }
}

/** The due Runs of one publication, or, while trees are limited, those of one tree among them. */
class Group<T> {
  readonly runs = new Heap<T>();
  /** Its place among the groups of its publication from which something may be claimed; its key is its first Run's. */
  readonly place: HeapNode<Group<T>>;
  readonly publication: PublicationRef;
  readonly tree: RunId | null;

  constructor(publication: PublicationRef, tree: RunId | null) {
    this.place = new HeapNode<Group<T>>(this, 0);
    this.publication = publication;
    this.tree = tree;
  }
}

interface Ready<T> {
  readonly agent: string;
  readonly groups: Map<RunId | null, Group<T>>;
  readonly open: Heap<Group<T>>;
}

/**
 * The Runs that may be claimed now or later. Those with a time to come stand in `#timers`; a look at the queue moves the
 * due ones to `#due` and to their group. So parked and ended Runs, Runs under publications that the asking worker does not
 * carry, and Runs of trees and agents that are at their limit, cost a claim nothing.
 */
export class ClaimQueue<T extends { readonly place: QueuePlace<T> }> {
  readonly #timers = new Heap<T>();
  readonly #due = new Heap<T>();
  readonly #ready = new Map<PublicationRef, Ready<T>>();
  readonly #room: RunningRoom<RunId>;

  constructor(room: RunningRoom<RunId>) {
    this.#room = room;
  }

  /** Queues an item for a time, or takes it out with null. */
  set(item: T, dueAt: number | null): void {
    this.#leaveGroup(item);
    if (dueAt === null) item.place.byDue.leave();
    else this.#timers.add(item.place.byDue, dueAt);
  }

  /** The due item that goes first among those under a carried publication and under no full limit. */
  first(now: number, carries: ReadonlySet<string>): T | null {
    this.#promote(now);
    if (!this.#room.tenantHasRoom()) return null;
    let best: HeapNode<T> | undefined;
    for (const [publication, { agent, open }] of this.#ready) {
      const head = open.first?.item.runs.first;
      if (head === undefined || !carries.has(publication) || !this.#room.agentHasRoom(agent)) continue;
      if (best === undefined || head.key < best.key || (head.key === best.key && head.order < best.order)) {
        best = head;
      }
    }
    return best?.item ?? null;
  }

  /** Is anything due under a carried publication and under no full limit, `except` left aside? */
  hasDue(now: number, carries: ReadonlySet<string>, except: T | null): boolean {
    this.#promote(now);
    if (!this.#room.tenantHasRoom()) return false;
    for (const [publication, { agent, open }] of this.#ready) {
      const first = open.first?.item;
      if (first === undefined || !carries.has(publication) || !this.#room.agentHasRoom(agent)) continue;
      if (open.size > 1 || first.runs.size > (except?.place.group === first ? 1 : 0)) return true;
    }
    return false;
  }

  /** The earliest time at which an item is due; it may lie in the past. */
  earliest(): number | null {
    const timer = this.#timers.first?.key ?? Number.POSITIVE_INFINITY;
    const due = this.#due.first?.key ?? Number.POSITIVE_INFINITY;
    const earliest = Math.min(timer, due);
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  /** The item that has been due longest. */
  oldestDue(now: number): T | null {
    this.#promote(now);
    return this.#due.first?.item ?? null;
  }

  /** To be called when something of the tree has begun or stopped to run, while trees are limited. */
  treeChanged(tree: RunId): void {
    for (const { groups } of this.#ready.values()) {
      const group = groups.get(tree);
      if (group !== undefined) this.#settle(group);
    }
  }

  /** To be called when the limits have changed. */
  limitsChanged(): void {
    for (const item of this.#due.items()) this.#leaveGroup(item);
    for (const item of this.#due.items()) this.#enterGroup(item, item.place.byDue.key);
  }

  #promote(now: number): void {
    for (;;) {
      const node = this.#timers.first;
      if (node === undefined || node.key > now) return;
      const dueAt = node.key;
      this.#due.add(node, dueAt);
      this.#enterGroup(node.item, dueAt);
    }
  }

  #enterGroup(item: T, dueAt: number): void {
    const { byKey, publication, tree, priority } = item.place;
    let ready = this.#ready.get(publication);
    if (ready === undefined) {
      ready = { agent: agentOf(publication), groups: new Map(), open: new Heap() };
      this.#ready.set(publication, ready);
    }
    const name = this.#room.limits.tree === null ? null : tree;
    let group = ready.groups.get(name);
    if (group === undefined) {
      group = new Group<T>(publication, name);
      ready.groups.set(name, group);
    }
    group.runs.add(byKey, dueAt - priority * PRIORITY_STEP_MS);
    item.place.group = group;
    this.#settle(group);
  }

  #leaveGroup({ place }: T): void {
    const { group } = place;
    if (group === null) return;
    place.byKey.leave();
    place.group = null;
    this.#settle(group);
  }

  /** Puts the group where its first Run and its tree's limit want it. */
  #settle(group: Group<T>): void {
    const ready = this.#ready.get(group.publication);
    const { first } = group.runs;
    if (first === undefined) {
      group.place.leave();
      ready?.groups.delete(group.tree);
      if (ready?.groups.size === 0) this.#ready.delete(group.publication);
    } else if (group.tree === null || this.#room.treeHasRoom(group.tree)) {
      ready?.open.add(group.place, first.key, first.order);
    } else group.place.leave();
  }
}
