import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Heap, HeapNode } from "./heap.ts";

const ADD = fc.record({ kind: fc.constant("add" as const), key: fc.integer({ min: 0, max: 30 }) });
const LEAVE = fc.record({ kind: fc.constant("leave" as const), which: fc.nat() });

describe("heap", () => {
  test("its first is the smallest of those that have not left, whoever left from wherever", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof({ weight: 3, arbitrary: ADD }, LEAVE), { maxLength: 120 }), (steps) => {
        const heap = new Heap<number>();
        const inside: HeapNode<number>[] = [];
        for (const [order, step] of steps.entries()) {
          if (step.kind === "add") {
            const node = new HeapNode(order, order);
            heap.add(node, step.key);
            inside.push(node);
          } else if (inside.length > 0) {
            const [gone] = inside.splice(step.which % inside.length, 1);
            gone?.leave();
          }
          const smallest = inside.toSorted((a, b) => a.key - b.key || a.order - b.order)[0];
          expect(heap.first).toBe(smallest);
          expect(heap.size).toBe(inside.length);
        }
        for (const node of inside.toSorted((a, b) => a.key - b.key || a.order - b.order)) {
          expect(heap.first).toBe(node);
          node.leave();
        }
      }),
      { numRuns: 500 },
    );
  });

  test("a node that enters another heap leaves the one it was in", () => {
    const [one, other] = [new Heap<string>(), new Heap<string>()];
    const node = new HeapNode("a", 0);
    one.add(node, 1);
    other.add(node, 2);
    expect([one.size, other.first]).toEqual([0, node]);
    one.remove(node);
    expect(other.size).toBe(1);
  });
});
