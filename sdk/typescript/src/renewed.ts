/// <reference lib="esnext.disposable" preserve="true" />
import type { Deadline } from './clock.js';
import { hasCode, type PaddockError } from './error.js';
import type { Hub, News, Watched } from './hub.js';
import type { State } from './options.js';
import { endAtService } from './release.js';
import type { Closing, Renewable } from './renewal.js';
import { toPaddockError } from './retry.js';
import type { LeaseState } from './state.js';

/** A Keeper knows until when a lease or a session may be trusted. */
export interface Keeper {
  readonly deadline: Deadline;
  /** Compares the clock with the deadline, even if timers are late. */
  check(): void;
  /** Renews soon, since it may have ended. */
  hint(news: News): void;
  /** Makes its timer keep the process running. */
  keepProcess(): void;
  /** Ends the renewals. */
  stop(): void;
}

/** A Renewed is a lease or a session in the hands of its holder. */
export abstract class Renewed {
  static {
    if (Symbol.asyncDispose) { // missing in Node before 18.18 and in some browsers
      const dispose = { value(this: Renewed) { return this.#dispose(); } };
      Object.defineProperty(this.prototype, Symbol.asyncDispose, dispose);
    }
  }

  readonly #ref: Pick<Renewable, 'end' | 'kind'>;
  readonly #state: LeaseState;
  readonly #keeper: Keeper;
  #ending: Promise<void> | undefined;

  /** @internal */
  constructor(ref: Pick<Renewable, 'end' | 'kind'>, state: LeaseState, keeper: Keeper) {
    this.#ref = ref;
    this.#state = state;
    this.#keeper = keeper;
  }

  /**
   * Aborted before it can end on the service, with a PaddockError `lease_lost` or `session_lost` as the reason; on release,
   * with `lease_released` or `session_closed`; and in `guard`, together with the signal in the options and with its reason.
   * Pass it to the work.
   */
  get signal(): AbortSignal {
    return this.#state.signal;
  }

  /**
   * Resolves when it is lost or its release starts. Never rejects. In Node, a process that has read `done` keeps running
   * until then.
   */
  get done(): Promise<void> {
    this.#keeper.keepProcess();
    return this.#state.done;
  }

  /** Why it ended: a loss or a release. Undefined while it is held or at risk. */
  get err(): PaddockError | undefined {
    return this.#state.error;
  }

  /** held, at_risk, lost or released. */
  get state(): State {
    return this.#state.state;
  }

  /** When it counts as lost unless it is renewed, on the wall clock, for people. */
  get deadline(): Date {
    return this.#keeper.deadline.date();
  }

  /** The milliseconds until the deadline; zero or less once it has passed. */
  get remainingMs(): number {
    return this.#keeper.deadline.left();
  }

  /**
   * Reports whether it is held. It compares the clocks now, so it is exact even where timers, and therefore the signal,
   * are late: in a process that was paused or a page that is hidden.
   */
  held(): boolean {
    this.#keeper.check();
    return this.#state.active;
  }

  /** Throws the signal's reason if the work must stop; as exact as `held`. Call it before each write. */
  check(): void {
    this.#keeper.check();
    this.signal.throwIfAborted();
  }

  /** @internal Renews at once, after news of its end. */
  protected hint(): void {
    this.#keeper.hint('ended');
  }

  /** @internal Lets the hub of the client watch it until it ends. */
  protected watch(hub: Hub | undefined, watched: Omit<Watched, 'hint'>): void {
    const leave = hub?.join({ ...watched, hint: (news) => this.#keeper.hint(news) });
    void this.#state.done.then(leave); // before the release is sent
  }

  /** @internal The release of a lease, which may close the lock; the close of a session. */
  end(closing?: Closing): Promise<void> {
    return (this.#ending ??= this.#end(closing));
  }

  async #end(closing?: Closing): Promise<void> {
    this.#keeper.check();
    this.#keeper.stop();
    if (this.err && this.state === 'lost') {
      await this.#surrender(this.err);
    }
    this.#state.release();
    try {
      await endAtService(this.#ref, undefined, closing);
    } catch (error) {
      this.#state.releaseFinished(toPaddockError(error));
      throw error;
    }
    this.#state.releaseFinished();
  }

  /**
   * surrender throws the loss. If only the clock reported it, it ends the lease or session first, which may still exist on
   * the service. A lease that stays is left to an operator: its release would hand half-done work to the next client.
   */
  async #surrender(loss: PaddockError): Promise<never> {
    if (loss.status === undefined && !this.#ref.kind.staysWhenLost) {
      await endAtService(this.#ref).catch(() => undefined); // it expires by itself, and the caller needs the loss
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

export interface Renewed extends AsyncDisposable {}

/**
 * finish ends a lease or session at the end of the work and returns the loss, if it was lost. A failed call does not fail
 * the work, which was done in time; `onState` reports it.
 */
export async function finish(renewed: Renewed): Promise<PaddockError | undefined> {
  try {
    await renewed.end();
  } catch (error) {
    if (hasCode(error, 'lease_lost', 'session_lost')) {
      return error;
    }
  }
  return undefined;
}
