/** Chance that repeats: the same seed draws the same numbers, on every machine. Not for secrets. */
export class SeededRandom {
  #state: number;

  constructor(seed: number | string) {
    this.#state = typeof seed === "number" ? mixed(seed) : hashed(seed);
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined && items.length === 0) throw new RangeError("There is nothing to pick from.");
    return item as T; // an index within the list
  }

  /** Another source whose numbers depend on this one's state and on the label, and which leaves this one alone. */
  fork(label: string): SeededRandom {
    return new SeededRandom(`${this.#state}:${label}`);
  }
}

function mixed(seed: number): number {
  return hashed(String(seed));
}

/** FNV-1a. */
function hashed(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash | 0;
}
