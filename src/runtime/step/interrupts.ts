import { LostClaim } from "./lost-claim.ts";

/** What reaches a driver from outside while it waits: wakes, the loss of its claim, and the stop of its carrier. */
export class Interrupts {
  /** Stops the carrier: the Run is canceled, or the claim is lost. */
  readonly stop: AbortController = new AbortController();
  #lost: LostClaim | null = null;
  #lostSignal: AbortController | null = null;
  #poke: () => void = () => undefined;
  #poked = false;

  get isLost(): boolean {
    return this.#lost !== null;
  }

  lose(reason: string): void {
    if (this.#lost !== null) return;
    this.#lost = new LostClaim(reason);
    this.stop.abort(this.#lost);
    this.#lostSignal?.abort(this.#lost);
    this.wakeUp();
  }

  throwIfLost(): void {
    if (this.#lost !== null) throw this.#lost;
  }

  /** Aborts when the claim is lost; made when it is first asked for. */
  whenLost(): AbortSignal {
    this.#lostSignal ??= new AbortController();
    if (this.#lost !== null) this.#lostSignal.abort(this.#lost);
    return this.#lostSignal.signal;
  }

  wakeUp(): void {
    this.#poked = true;
    this.#poke();
  }

  /** Resolves at the next thing that happens: a tool or the carrier settles, a signal comes, the claim is lost. */
  async event(): Promise<void> {
    if (!this.#poked) await new Promise<void>((resolve) => void (this.#poke = resolve));
    this.#poked = false;
    this.#poke = () => undefined;
  }
}
