/// <reference lib="esnext.disposable" preserve="true" />
import type { Deadline } from './clock.js';
import { hasCode, PaddockError } from './error.js';
import type { Options, State } from './options.js';
import { releaseLease } from './release.js';
import type { LeaseRef } from './renewal.js';
import { Renewer } from './renewer.js';
import { toPaddockError } from './retry.js';
import type { components } from './schema.js';
import { LeaseState } from './state.js';

/**
 * A Lease is a grant of the lock to this holder. It is renewed in the background until it is released or lost. In
 * Node, that does not keep the process running, except inside `guard`.
 */
export class Lease {
  static {
    if (Symbol.asyncDispose) { // missing in Node before 18.18 and in some browsers
      const dispose = { value(this: Lease) { return this.#dispose(); } };
      Object.defineProperty(this.prototype, Symbol.asyncDispose, dispose);
    }
  }

  /** The lock's name. */
  readonly name: string;
  /** The fencing token: send it with every write that the lock guards. */
  readonly token: number;
  /** 0 for an exclusive lease, 1 or greater for others. Resources guarded by permits are fenced by name and slot. */
  readonly slot: number;
  /** The holder, as shown to people. */
  readonly holder: string;
  readonly #ref: LeaseRef;
  readonly #state: LeaseState;
  readonly #renewer: Renewer;
  #releasing: Promise<void> | undefined;

  /** @internal Leases come from `acquire` and `guard`. */
  constructor(ref: LeaseRef, lease: components['schemas']['Lease'], deadline: Deadline, options: Options, forGuard: boolean) {
    this.name = lease.name;
    this.token = lease.fencing_token;
    this.slot = lease.slot;
    this.holder = lease.holder;
    this.#ref = ref;
    this.#state = new LeaseState(options.onState, forGuard ? options.signal : undefined);
    this.#renewer = new Renewer(ref, this.#state, { onRetry: options.onRetry, onRenewed: options.onRenewed, keepsProcess: forGuard }, deadline);
  }

  /**
   * Aborted before the lease can end on the service, with a PaddockError `lease_lost` as the reason; on release, with
   * `lease_released`; and in `guard`, together with the signal in the options and with its reason. Pass it to the
   * work.
   */
  get signal(): AbortSignal {
    return this.#state.signal;
  }

  /** Resolves when the lease is lost or its release starts. Never rejects. */
  get done(): Promise<void> {
    return this.#state.done;
  }

  /** Why the lease ended: `lease_lost` or `lease_released`. Undefined while it is held or at risk. */
  get err(): PaddockError | undefined {
    return this.#state.error;
  }

  /** The state of the lease: held, at risk, lost or released. */
  get state(): State {
    return this.#state.state;
  }

  /** When the lease counts as lost unless it is renewed, on the wall clock, for people. */
  get deadline(): Date {
    return this.#renewer.deadline.date();
  }

  /** The milliseconds until the deadline; zero or less once it has passed. */
  get remainingMs(): number {
    return this.#renewer.deadline.left();
  }

  /**
   * Reports whether the lease is held. It compares the clocks now, so it is exact even where timers, and therefore the
   * signal, are late: in a process that was paused or a page that is hidden.
   */
  held(): boolean {
    this.#renewer.check();
    return this.#state.active;
  }

  /** Throws the signal's reason if the work must stop; as exact as `held`. Call it before each write. */
  check(): void {
    this.#renewer.check();
    this.signal.throwIfAborted();
  }

  /**
   * Releases the lease. If the service does not respond, it retries for up to five seconds; no signal ends that
   * sooner. Rejects with `lease_lost` if the lease ended before: the work may have overlapped with another holder's.
   * Rejects with another PaddockError if the service does not respond; the lease then ends with its TTL. A second
   * call returns the same promise.
   */
  release(): Promise<void> {
    return (this.#releasing ??= this.#release());
  }

  async #release(): Promise<void> {
    this.#renewer.check();
    this.#renewer.stop();
    if (this.err && this.state === 'lost') {
      await this.#surrender(this.err);
    }
    this.#state.release();
    try {
      await releaseLease(this.#ref);
    } catch (error) {
      this.#state.releaseFinished(toPaddockError(error));
      throw error;
    }
    this.#state.releaseFinished();
  }

  /**
   * surrender throws the loss. If only the clock reported it, it releases the lease first, which may still exist on
   * the service.
   */
  async #surrender(loss: PaddockError): Promise<never> {
    if (loss.status === undefined) {
      await releaseLease(this.#ref).catch(() => undefined); // the lease expires by itself, and the caller needs the loss
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
 * finish releases the lease at the end of the work and returns the loss, if it was lost. A failed release call does
 * not fail the work, which was done in time; `onState` reports it.
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
