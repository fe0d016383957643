/** A word as a POSIX shell reads it back. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command to copy: the program with the same store, config and tenant as it was called with now. */
export function errandCommand(words: readonly string[], scope: readonly string[] = []): string {
  return ["errand", ...words, ...scope].map(shellWord).join(" ");
}
