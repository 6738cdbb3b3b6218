import { Deadline, mark, type Mark } from './clock.js';
import { PaddockError } from './error.js';
import { given } from './given.js';
import type { Options } from './options.js';
import { attemptMs, renewOnce, type Claim } from './renewal.js';
import { asError, backoff } from './retry.js';
import type { Standing } from './standing.js';
import { tell } from './tell.js';

/** tickMs is how often at least a keeper looks at the clock, since timers do not count a suspension. */
export const tickMs = 1_000;

/** longestRenewPauseMs is the longest pause between a renewal that failed and the next. */
export const longestRenewPauseMs = 5_000;

/** KeeperOptions say how a keeper goes about it. */
export interface KeeperOptions {
  readonly onRetry: Options['onRetry'];
  /** Whether the keeper keeps the process running, as timers do in Node. */
  readonly keepsProcess: boolean;
}

/**
 * A Keeper renews a lease each third of its TTL or a little sooner, and loses it at its deadline, or as soon as the service
 * says that it is lost. It never rejects or throws.
 */
export class Keeper {
  readonly #stopped = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due: Deadline;
  #renewing = false;
  #failures = 0;
  #last: PaddockError | undefined;

  constructor(
    private readonly claim: Claim,
    private readonly standing: Standing,
    private readonly options: KeeperOptions,
    public deadline: Deadline,
  ) {
    this.#due = this.#aThirdAfter(mark());
    this.#tick();
  }

  /** stop ends the renewing, also one that is on its way. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort(new PaddockError('unavailable', 'The lease is not renewed any more.'));
  }

  /** look compares the clock with the deadline, whatever timers are up to, and does what is due. */
  look(): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    if (this.deadline.over()) {
      this.#lose(this.#tooLate());
    } else if (!this.#renewing && this.#due.over()) {
      void this.#renew();
    }
  }

  /** tick looks, and does so again when something may be due. */
  #tick(): void {
    this.look();
    clearTimeout(this.#timer);
    if (this.#stopped.signal.aborted) {
      return;
    }
    const next = Math.min(tickMs, this.deadline.left(), this.#renewing ? tickMs : this.#due.left());
    this.#timer = setTimeout(() => this.#tick(), Math.max(next, 1));
    if (!this.options.keepsProcess) {
      (this.#timer as { unref?(): void }).unref?.();
    }
  }

  async #renew(): Promise<void> {
    this.#renewing = true;
    const asked = mark();
    try {
      const ms = Math.min(attemptMs(this.claim.ttlMs, this.#failures), this.deadline.left());
      this.#renewed(asked, await renewOnce(this.claim, ms, this.#stopped.signal));
    } catch (error) {
      this.#failed(asError(error));
    }
    this.#renewing = false;
    this.#tick();
  }

  #renewed(asked: Mark, deadline: Deadline): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    if (deadline.left() > this.deadline.left()) {
      this.deadline = deadline;
    }
    this.#failures = 0;
    this.#due = this.#aThirdAfter(asked);
    this.standing.renewed();
  }

  #failed(error: PaddockError): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    if (error.code === 'lease_lost') {
      this.#lose(error);
      return;
    }
    const { ttlMs } = this.claim;
    this.#last = error;
    this.#due = new Deadline(mark(), backoff(this.#failures++, ttlMs / 50, Math.min(ttlMs / 10, longestRenewPauseMs), error));
    this.standing.failed(error);
    tell(this.options.onRetry, error);
  }

  #lose(error: PaddockError): void {
    this.stop();
    this.standing.lose(error);
  }

  #aThirdAfter(then: Mark): Deadline {
    return new Deadline(then, (this.claim.ttlMs / 3) * (1 - Math.random() / 5));
  }

  #tooLate(): PaddockError {
    return new PaddockError('lease_lost', 'The lease could not be renewed in time, so it may be over. ' +
      'Stop the work; to go on, acquire again and use the new token.', given({ cause: this.#last }));
  }
}
