/** One line of output. Keys are stable; null where a figure does not exist for the store or the case. */
export interface Figures {
  readonly case: string;
  readonly store: string;
  readonly [key: string]: string | number | null;
}

/** One JSON object a line, or aligned text for people. */
export function print(figures: Figures, json: boolean): void {
  if (json) {
    console.log(JSON.stringify(figures));
    return;
  }
  const { case: name, store, ...rest } = figures;
  console.log(`${store}: ${name}`);
  for (const [key, value] of Object.entries(rest)) {
    if (value !== null) console.log(`  ${key.padEnd(26)} ${value}`);
  }
}
