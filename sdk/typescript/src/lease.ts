/// <reference lib="esnext.disposable" preserve="true" />
import type { Deadline } from './clock.js';
import { hasCode, PaddockError } from './error.js';
import { Keeper } from './keeper.js';
import type { Options, State } from './options.js';
import { giveBack } from './release.js';
import type { Claim } from './renewal.js';
import { asError } from './retry.js';
import type { components } from './schema.js';
import { Standing } from './standing.js';

/**
 * A Lease is a lock that is ours for now. It is renewed in the background until it is released or lost. In Node that does not
 * keep the process running, except inside of `guard`.
 */
export class Lease {
  static {
    if (Symbol.asyncDispose) { // Node before 18.18 and some browsers have none
      const dispose = { value(this: Lease) { return this.#dispose(); } };
      Object.defineProperty(this.prototype, Symbol.asyncDispose, dispose);
    }
  }

  /** The lock's name. */
  readonly name: string;
  /** The fencing token: it goes along with every write that the lock guards. */
  readonly token: number;
  /** 0 for an exclusive lease, from 1 on for others. What permits guard is fenced by name and slot. */
  readonly slot: number;
  /** Who has the lock, as people see it. */
  readonly holder: string;
  readonly #claim: Claim;
  readonly #standing: Standing;
  readonly #keeper: Keeper;
  #releasing: Promise<void> | undefined;

  /** @internal Leases come from `acquire` and `guard`. */
  constructor(claim: Claim, lease: components['schemas']['Lease'], deadline: Deadline, options: Options, forWork: boolean) {
    this.name = lease.name;
    this.token = lease.fencing_token;
    this.slot = lease.slot;
    this.holder = lease.holder;
    this.#claim = claim;
    this.#standing = new Standing(options.onState, forWork ? options.signal : undefined);
    this.#keeper = new Keeper(claim, this.#standing, { onRetry: options.onRetry, keepsProcess: forWork }, deadline);
  }

  /**
   * Is aborted before the lease can end on the service, with a PaddockError `lease_lost` as its reason; when it is released, with
   * `lease_released`; and in `guard` when the signal among the options is, with that one's reason. Hand it to whatever does the work.
   */
  get signal(): AbortSignal {
    return this.#standing.signal;
  }

  /** Resolves when the lease is lost, or its release begins. It never rejects. */
  get done(): Promise<void> {
    return this.#standing.done;
  }

  /** Why the lease is over: `lease_lost` or `lease_released`; undefined while it is held, also at risk. */
  get err(): PaddockError | undefined {
    return this.#standing.error;
  }

  /** How sure one may be of the lease. */
  get state(): State {
    return this.#standing.state;
  }

  /** When the lease counts as lost unless it is renewed before: on the wall clock, for people. */
  get deadline(): Date {
    return this.#keeper.deadline.date();
  }

  /** How many milliseconds are left until then, not above zero once it has come. */
  get remainingMs(): number {
    return this.#keeper.deadline.left();
  }

  /**
   * Returns whether the lease is held, which is exact where the signal may be late: it compares the clocks now, whatever
   * timers are up to in a process that was paused or a page that is hidden.
   */
  held(): boolean {
    this.#keeper.look();
    return this.#standing.live;
  }

  /** Throws the signal's reason unless the work may go on, as exactly as `held` does. Call it before each write. */
  check(): void {
    this.#keeper.look();
    this.signal.throwIfAborted();
  }

  /**
   * Gives the lease up, which takes up to five seconds where nobody answers, and no signal cuts short. It rejects with `lease_lost` if
   * the lease had ended before: the work may have overlapped with somebody else's. It rejects with another
   * PaddockError when nobody answers; the lease then ends with its TTL. Again, it returns what it did before.
   */
  release(): Promise<void> {
    return (this.#releasing ??= this.#release());
  }

  async #release(): Promise<void> {
    this.#keeper.look();
    this.#keeper.stop();
    if (this.err && this.state === 'lost') {
      await this.#surrender(this.err);
    }
    this.#standing.release();
    try {
      await giveBack(this.#claim);
    } catch (error) {
      this.#standing.released(asError(error));
      throw error;
    }
    this.#standing.released();
  }

  /** surrender throws the loss. If nobody but the clock said that the lease is over, it is given back first, should it still be there. */
  async #surrender(loss: PaddockError): Promise<never> {
    if (loss.status === undefined) {
      await giveBack(this.#claim).catch(() => undefined); // it ends by itself, and the loss is what counts
    }
    throw loss;
  }

  async #dispose(): Promise<void> {
    const lost = await finish(this);
    if (lost) {
      throw lost;
    }
  }
}

export interface Lease extends AsyncDisposable {}

/**
 * finish releases the lease at the end of the work, and returns the loss if it was lost. That nobody answered is no
 * matter to the work, which was done in time; `onState` is told.
 */
export async function finish(lease: Lease): Promise<PaddockError | undefined> {
  try {
    await lease.release();
  } catch (error) {
    if (hasCode(error, 'lease_lost')) {
      return error;
    }
  }
  return undefined;
}
