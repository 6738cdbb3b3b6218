import { PaddockError } from './error.js';
import type { Options, State } from './options.js';
import { tell } from './tell.js';

/**
 * A Standing is how a lease stands, as its holder sees it: held or at risk, until it is lost or released for good. It tells
 * of that in every way there is: the state, the error, the signal, the promise, the callback.
 */
export class Standing {
  #state: State = 'held';
  #error: PaddockError | undefined;
  readonly #controller = new AbortController();
  #unfollow = (): void => {};
  #resolve!: () => void;
  readonly done: Promise<void>;

  /** The signal, if one is given, ends the work, not the lease. */
  constructor(private readonly onState: Options['onState'], signal: AbortSignal | null | undefined) {
    this.done = new Promise((resolve) => (this.#resolve = resolve));
    if (signal) {
      this.#follow(signal);
    }
  }

  /** follow has the work stopped when the caller's signal says so. The lease is kept meanwhile. */
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

  /** live is whether the lease is neither lost nor released. */
  get live(): boolean {
    return this.#state === 'held' || this.#state === 'at_risk';
  }

  /** renewed notes that a renewal succeeded. */
  renewed(): void {
    if (this.#state === 'at_risk') {
      this.#state = 'held';
      this.#tell();
    }
  }

  /** failed notes that a renewal did not. */
  failed(error: PaddockError): void {
    if (this.#state === 'held') {
      this.#state = 'at_risk';
      this.#tell(error);
    }
  }

  /** lose ends it as lost, unless it has ended. */
  lose(error: PaddockError): void {
    if (this.live) {
      this.#end('lost', error);
      this.#tell(error);
    }
  }

  /** release ends it as released, unless it has ended. What comes of the release is still to be told. */
  release(): void {
    if (this.live) {
      this.#end('released', new PaddockError('lease_released', 'The lease was released. Do nothing more under it; to go on, acquire again.'));
    }
  }

  /** released notes what came of the release: the service's answer, or that it had lost the lease before, or that nobody answered. */
  released(error?: PaddockError): void {
    if (error?.code === 'lease_lost') {
      this.#error = error;
      this.#state = 'lost';
    }
    this.#tell(error);
  }

  #end(state: State, reason: PaddockError): void {
    this.#state = state;
    this.#error = reason;
    this.#unfollow();
    this.#controller.abort(reason);
    this.#resolve();
  }

  #tell(error?: PaddockError): void {
    if (error === undefined) {
      tell(this.onState, this.#state);
    } else {
      tell(this.onState, this.#state, error);
    }
  }
}
