/** Randomness for new identities, as a port: production draws them, tests count. */
export interface IdSource {
  /** 24 lower-case letters and digits, never the same twice. */
  next(): string;
}
