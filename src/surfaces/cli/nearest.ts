/** The candidate that somebody most likely meant: one that begins like the word, or is a few letters away. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(word.length / 4)) + 1;
  for (const candidate of candidates) {
    if (word.length >= 3 && candidate.startsWith(word)) return candidate;
    const distance = editDistance(word, candidate, least);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

/** Letters to insert, delete or replace; anything at or above `limit` counts as `limit`. */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit;
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let at = 1; at <= left.length; at++) {
    const next = [at];
    for (let to = 1; to <= right.length; to++) {
      const same = left[at - 1] === right[to - 1] ? 0 : 1;
      next.push(Math.min((row[to] ?? limit) + 1, (next[to - 1] ?? limit) + 1, (row[to - 1] ?? limit) + same));
    }
    row = next;
  }
  return Math.min(row.at(-1) ?? limit, limit);
}
