/** One item's place in a heap. It knows where it stands, so that it can leave from the middle. */
export class HeapNode<T> {
  key = 0;
  slot = -1;
  heap: Heap<T> | null = null;
  readonly item: T;
  /** Decides between equal keys: the lower goes first. */
  order: number;

  constructor(item: T, order: number) {
    this.item = item;
    this.order = order;
  }

  leave(): void {
    this.heap?.remove(this);
  }
}

function before<T>(a: HeapNode<T>, b: HeapNode<T>): boolean {
  return a.key < b.key || (a.key === b.key && a.order < b.order);
}

/** A binary heap, smallest key first. A node stands in at most one heap. */
export class Heap<T> {
  readonly #nodes: HeapNode<T>[] = [];

  get size(): number {
    return this.#nodes.length;
  }

  get first(): HeapNode<T> | undefined {
    return this.#nodes[0];
  }

  /** In no order. */
  items(): readonly T[] {
    return this.#nodes.map((node) => node.item);
  }

  add(node: HeapNode<T>, key: number, order: number = node.order): void {
    node.leave();
    node.key = key;
    node.order = order;
    node.heap = this;
    node.slot = this.#nodes.length;
    this.#nodes.push(node);
    this.#rise(node);
  }

  remove(node: HeapNode<T>): void {
    if (node.heap !== this) return;
    const last = this.#nodes.pop();
    if (last !== undefined && last !== node) {
      this.#put(last, node.slot);
      this.#rise(last);
      this.#sink(last);
    }
    node.heap = null;
    node.slot = -1;
  }

  #put(node: HeapNode<T>, slot: number): void {
    this.#nodes[slot] = node;
    node.slot = slot;
  }

  #rise(node: HeapNode<T>): void {
    while (node.slot > 0) {
      const slot = node.slot;
      const parent = this.#nodes[(slot - 1) >> 1];
      if (parent === undefined || before(parent, node)) return;
      this.#put(node, parent.slot);
      this.#put(parent, slot);
    }
  }

  #sink(node: HeapNode<T>): void {
    for (;;) {
      const slot = node.slot;
      const left = this.#nodes[2 * slot + 1];
      if (left === undefined) return;
      const right = this.#nodes[2 * slot + 2];
      const child = right !== undefined && before(right, left) ? right : left;
      if (before(node, child)) return;
      this.#put(node, child.slot);
      this.#put(child, slot);
    }
  }
}
