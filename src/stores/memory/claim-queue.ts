import type { PublicationRef } from "../../domain/id.ts";
import { Heap, HeapNode } from "./heap.ts";

/** A minute of waiting is worth one step of priority, so low priority is late but never starved. */
const PRIORITY_STEP_MS = 60_000;

/** A Run's two places in the queue: by the time it is due, and among the due ones of its publication by claim key. */
export class QueuePlace<T> {
  readonly byDue: HeapNode<T>;
  readonly byKey: HeapNode<T>;
  readonly publication: PublicationRef;
  readonly priority: number;

  constructor(item: T, order: number, publication: PublicationRef, priority: number) {
    this.byDue = new HeapNode(item, order);
    this.byKey = new HeapNode(item, order);
    this.publication = publication;
    this.priority = priority;
  }
}

/**
 * The Runs that may be claimed now or later. Those with a time to come stand in `#timers`; a look at the queue moves the
 * due ones to `#due` and to the heap of their publication. So parked and ended Runs, and Runs under publications that the
 * asking worker does not carry, cost a claim nothing.
 */
export class ClaimQueue<T extends { readonly place: QueuePlace<T> }> {
  readonly #timers = new Heap<T>();
  readonly #due = new Heap<T>();
  readonly #ready = new Map<PublicationRef, Heap<T>>();

  /** Queues an item for a time, or takes it out with null. */
  set(item: T, dueAt: number | null): void {
    const { byDue, byKey, publication } = item.place;
    if (byKey.heap !== null) {
      byKey.leave();
      if (this.#ready.get(publication)?.size === 0) this.#ready.delete(publication);
    }
    if (dueAt === null) byDue.leave();
    else this.#timers.add(byDue, dueAt);
  }

  /** The due item that goes first among those under a carried publication. */
  first(now: number, carries: ReadonlySet<string>): T | null {
    this.#promote(now);
    let best: HeapNode<T> | undefined;
    for (const [publication, heap] of this.#ready) {
      const head = heap.first;
      if (head === undefined || !carries.has(publication)) continue;
      if (best === undefined || head.key < best.key || (head.key === best.key && head.order < best.order)) {
        best = head;
      }
    }
    return best?.item ?? null;
  }

  /** Is anything due under a carried publication, `except` left aside? */
  hasDue(now: number, carries: ReadonlySet<string>, except: T | null): boolean {
    this.#promote(now);
    for (const [publication, heap] of this.#ready) {
      if (!carries.has(publication)) continue;
      const aside = except !== null && except.place.byKey.heap === heap ? 1 : 0;
      if (heap.size > aside) return true;
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

  #promote(now: number): void {
    for (;;) {
      const node = this.#timers.first;
      if (node === undefined || node.key > now) return;
      const dueAt = node.key;
      this.#due.add(node, dueAt);
      const { byKey, publication, priority } = node.item.place;
      let heap = this.#ready.get(publication);
      if (heap === undefined) {
        heap = new Heap<T>();
        this.#ready.set(publication, heap);
      }
      heap.add(byKey, dueAt - priority * PRIORITY_STEP_MS);
    }
  }
}
