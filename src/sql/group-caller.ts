/*
 * Sends jobs to a server in groups, one call a group.
 *
 * A1 What is submitted while a call is under way, or in one tick, goes together in the next one, up to a bound. Two jobs
 *    that share a key are never in one group: the later one waits for the earlier one's answer.
 * A2 A group whose call fails in a way that may pass (a deadlock, a lock not had in time) is called again, then job by
 *    job, each until its time has run out.
 * A3 A group whose call fails for what a job holds is called job by job at once: that job fails with its own error, its
 *    neighbours are late once.
 * A4 When it is unknown whether a call was carried out, its jobs fail and are not repeated: their owner asks by name.
 */

export type CallFailure = "passing" | "poison" | "unknown";

export interface GroupCallerOptions<Job, Answer> {
  /** Carries out the jobs in one transaction and answers for each, in order. */
  readonly call: (jobs: readonly Job[]) => Promise<readonly Answer[]>;
  /** What a job cannot share with another one of its group. */
  readonly keys: (job: Job) => readonly string[];
  readonly classify: (error: unknown) => CallFailure;
  /** Turns what the call threw into the error that a job's owner sees. */
  readonly explain: (error: unknown) => unknown;
  readonly maxGroup: number;
  /** How many calls may be under way. What is queued is shared out among those that are free. */
  readonly inFlight: number;
  /** A smaller share than this is not worth a call of its own while another one is under way. */
  readonly minShare: number;
  /** How long a job is tried again after passing failures. */
  readonly patienceMs: number;
  /** Called when everything has been answered. */
  readonly onIdle: () => void;
}

interface Entry<Job, Answer> {
  readonly job: Job;
  readonly keys: readonly string[];
  readonly since: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

const GROUP_TRIES = 3;
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 100;

export class GroupCaller<Job, Answer> {
  readonly #options: GroupCallerOptions<Job, Answer>;
  #queue: Entry<Job, Answer>[] = [];
  /** Keys of the jobs under way. */
  readonly #taken = new Set<string>();
  #calls = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(options: GroupCallerOptions<Job, Answer>) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#calls === 0 && this.#queue.length === 0;
  }

  submit(job: Job): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      this.#queue.push({ job, keys: this.#options.keys(job), since: performance.now(), resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(this.#start);
    });
  }

  /** Settles once everything submitted so far has been answered or has failed. */
  async drain(): Promise<void> {
    if (!this.isIdle) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  readonly #start = (): void => {
    this.#scheduled = false;
    while (this.#calls < this.#options.inFlight && this.#queue.length > 0) {
      const free = this.#options.inFlight - this.#calls;
      const share = Math.max(this.#options.minShare, Math.ceil(this.#queue.length / free));
      const group = this.#takeGroup(Math.min(share, this.#options.maxGroup));
      if (group.length === 0) return;
      this.#calls += 1;
      void this.#run(group).then(() => this.#done(group));
    }
  };

  #done(group: readonly Entry<Job, Answer>[]): void {
    this.#calls -= 1;
    for (const entry of group) for (const key of entry.keys) this.#taken.delete(key);
    if (this.#queue.length > 0) this.#start();
    if (!this.isIdle) return;
    this.#options.onIdle();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** From the head of the queue; a job that is held back holds back those that share a key with it. */
  #takeGroup(size: number): Entry<Job, Answer>[] {
    const group: Entry<Job, Answer>[] = [];
    const rest: Entry<Job, Answer>[] = [];
    const held = new Set<string>();
    for (const entry of this.#queue) {
      const waits = entry.keys.some((key) => this.#taken.has(key) || held.has(key));
      if (waits || group.length >= size) {
        for (const key of entry.keys) held.add(key);
        rest.push(entry);
      } else {
        for (const key of entry.keys) this.#taken.add(key);
        group.push(entry);
      }
    }
    this.#queue = rest;
    return group;
  }

  async #run(group: readonly Entry<Job, Answer>[]): Promise<void> {
    const tries = group.length > 1 ? GROUP_TRIES : Number.POSITIVE_INFINITY;
    let failure = await this.#call(group);
    for (let tried = 1; failure !== null && tried < tries; tried++) {
      const late = performance.now() - (group[0]?.since ?? 0) > this.#options.patienceMs;
      if (failure.kind !== "passing" || (group.length === 1 && late)) break;
      await pause(tried);
      failure = await this.#call(group);
    }
    if (failure === null) return;
    if (failure.kind === "unknown" || group.length === 1) {
      const error = this.#options.explain(failure.error);
      for (const entry of group) entry.reject(error);
      return;
    }
    for (const entry of group) await this.#run([entry]);
  }

  async #call(
    group: readonly Entry<Job, Answer>[],
  ): Promise<{ readonly kind: CallFailure; readonly error: unknown } | null> {
    let answers: readonly Answer[];
    try {
      answers = await this.#options.call(group.map((entry) => entry.job));
    } catch (error) {
      return { kind: this.#options.classify(error), error };
    }
    for (const [at, entry] of group.entries()) entry.resolve(answers[at] as Answer);
    return null;
  }
}

function pause(tried: number): Promise<void> {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(tried, 10));
  return new Promise((resolve) => setTimeout(resolve, longest * (0.5 + Math.random() / 2)));
}
