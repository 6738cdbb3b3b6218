import { PaddockError } from './error.js';
import type { Kind } from './kind.js';
import { notify } from './notify.js';
import type { Options, State } from './options.js';

/**
 * LeaseState is the state of a lease or a session as its holder sees it: held or at risk, until it is lost or released for good. It
 * publishes each change as a state, an error, an abort signal, a promise and a callback.
 */
export class LeaseState {
  #state: State = 'held';
  #error: PaddockError | undefined;
  readonly #controller = new AbortController();
  #unfollow = (): void => {};
  #resolve!: () => void;
  readonly done: Promise<void>;

  /** The optional signal ends the work but not the lease. */
  constructor(private readonly kind: Kind, private readonly onState: Options['onState'], signal: AbortSignal | null | undefined) {
    this.done = new Promise((resolve) => (this.#resolve = resolve));
    if (signal) {
      this.#follow(signal);
    }
  }

  /** follow aborts the work's signal together with the caller's. The lease is renewed until the work has ended. */
  #follow(signal: AbortSignal): void {
    const stop = () => this.#controller.abort(signal.reason);
    if (signal.aborted) {
      stop();
      return;
    }
    signal.addEventListener('abort', stop, { once: true });
    this.#unfollow = () => signal.removeEventListener('abort', stop);
  }

  get state(): State {
    return this.#state;
  }

  get error(): PaddockError | undefined {
    return this.#error;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** active reports whether the lease is neither lost nor released. */
  get active(): boolean {
    return this.#state === 'held' || this.#state === 'at_risk';
  }

  /** renewed records a successful renewal. */
  renewed(): void {
    if (this.#state === 'at_risk') {
      this.#state = 'held';
      this.#notify();
    }
  }

  /** renewalFailed records a failed renewal. */
  renewalFailed(error: PaddockError): void {
    if (this.#state === 'held') {
      this.#state = 'at_risk';
      this.#notify(error);
    }
  }

  /** lose ends the lease as lost, unless it has ended. */
  lose(error: PaddockError): void {
    if (this.active) {
      this.#end('lost', error);
      this.#notify(error);
    }
  }

  /** release ends the lease as released, unless it has ended. The callback is called later, by releaseFinished. */
  release(): void {
    if (this.active) {
      this.#end('released', new PaddockError(this.kind.released, this.kind.ended));
    }
  }

  /**
   * releaseFinished records the outcome of the release call: success, an earlier loss of the lease, or a failed call.
   */
  releaseFinished(error?: PaddockError): void {
    if (error?.code === this.kind.lost) {
      this.#error = error;
      this.#state = 'lost';
    }
    this.#notify(error);
  }

  #end(state: State, reason: PaddockError): void {
    this.#state = state;
    this.#error = reason;
    this.#unfollow();
    this.#controller.abort(reason);
    this.#resolve();
  }

  #notify(error?: PaddockError): void {
    if (error === undefined) {
      notify(this.onState, this.#state);
    } else {
      notify(this.onState, this.#state, error);
    }
  }
}
