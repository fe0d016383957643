/** One thing wrong with the files of a release, in words for the person who has to mend it. */
export interface InputProblem {
  /** The file (or folder) that is missing or wrong, as the caller named it. */
  readonly file: string;
  readonly problem: string;
  /** What to do about it. */
  readonly fix: string;
}

/**
 * The input cannot be reviewed. It is not a verdict: a release that reads well and is bad gives failed checks instead.
 * All problems found in one reading are listed, so one round of mending is enough.
 */
export class ReleaseInputError extends Error {
  override readonly name = "ReleaseInputError";
  readonly problems: readonly InputProblem[];

  constructor(problems: readonly InputProblem[], options?: ErrorOptions) {
    super(problems.map(({ file, problem, fix }) => `${file}: ${problem} ${fix}`).join("\n"), options);
    this.problems = problems;
  }
}

/** Shorthand for the usual case of a single problem. */
export function inputError(file: string, problem: string, fix: string, cause?: unknown): ReleaseInputError {
  return new ReleaseInputError([{ file, problem, fix }], cause === undefined ? undefined : { cause });
}

/** The message of anything that was thrown, on one line. */
export function reasonOf(thrown: unknown): string {
  return (thrown instanceof Error ? thrown.message : String(thrown)).replace(/\s+/g, " ").trim();
}
