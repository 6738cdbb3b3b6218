import { Deadline, mark, type Mark } from './clock.js';
import { PaddockError } from './error.js';
import type { News } from './hub.js';
import { notify } from './notify.js';
import { omitUndefined } from './omit.js';
import type { Options } from './options.js';
import { unref } from './platform.js';
import { attemptTimeoutMs, renewOnce, type Renewable } from './renewal.js';
import type { Keeper } from './renewed.js';
import { backoff, toPaddockError } from './retry.js';
import type { LeaseState } from './state.js';

/** tickMs is the longest interval between two checks of the clock: timers do not count the time of a suspension. */
export const tickMs = 1_000;

/** maxRenewPauseMs is the longest pause between a failed renewal and the next attempt. */
export const maxRenewPauseMs = 5_000;

/** missedMs is within what time all leases and sessions renew if news may have been missed. */
const missedMs = 3_000;

/** RenewerOptions configure a Renewer. */
export interface RenewerOptions {
  readonly onRetry: Options['onRetry'];
  readonly onRenewed: Options['onRenewed'];
  /** Whether the renewer's timer keeps the process running, as timers do in Node. */
  keepsProcess(): boolean;
  /** Called at each check of the clock; returns the milliseconds until it is to be called again. */
  watch?(): number;
}

/**
 * A Renewer renews a lease or a session every third of its TTL, or slightly sooner. It marks it lost at the deadline, or as soon
 * as the service says so. It never rejects or throws.
 */
export class Renewer implements Keeper {
  readonly #stopped = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due: Deadline;
  #renewing = false;
  #hinted: Deadline | undefined; // when to renew again, after a hint since the renewal in flight was sent
  readonly #turn = Math.random(); // its share of the time within which all renew
  #kept = false;
  #failures = 0;
  #lastError: PaddockError | undefined;

  constructor(
    private readonly ref: Renewable,
    private readonly state: LeaseState,
    private readonly options: RenewerOptions,
    public deadline: Deadline,
  ) {
    this.#due = this.#nextRenewal(mark());
    this.#tick();
  }

  /** stop ends the renewals and aborts one in flight. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort(new PaddockError('unavailable', 'It is no longer renewed.'));
  }

  /** check compares the clock with the deadline, even if timers are late, and starts a renewal if one is due. */
  check(): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    if (this.deadline.passed()) {
      this.#lose(this.#deadlineError());
    } else if (!this.#renewing && this.#due.passed()) {
      void this.#renew();
    }
  }

  hint(news: News): void {
    const at = new Deadline(mark(), news === 'missed' ? this.#turn * missedMs : 0);
    if (this.#renewing) {
      this.#hinted = at.earlier(this.#hinted);
    } else {
      this.#due = at.earlier(this.#due);
    }
    this.#tick();
  }

  keepProcess(): void {
    this.#kept = true;
    this.#tick();
  }

  /** reschedule takes account of a change of what watch and keepsProcess return. */
  reschedule(): void {
    this.#tick();
  }

  /** tick runs check and schedules the next tick. */
  #tick(): void {
    this.check();
    clearTimeout(this.#timer);
    if (this.#stopped.signal.aborted) {
      return;
    }
    const watched = this.options.watch?.() ?? tickMs;
    const next = Math.min(tickMs, watched, this.deadline.left(), this.#renewing ? tickMs : this.#due.left());
    this.#timer = setTimeout(() => this.#tick(), Math.max(next, 1));
    if (!this.#kept && !this.options.keepsProcess()) {
      unref(this.#timer);
    }
  }

  async #renew(): Promise<void> {
    this.#renewing = true;
    const sent = mark();
    try {
      const timeoutMs = Math.min(attemptTimeoutMs(this.ref.ttlMs, this.#failures), this.deadline.left());
      this.#renewed(sent, await renewOnce(this.ref, { timeoutMs, signal: this.#stopped.signal }));
    } catch (error) {
      this.#failed(toPaddockError(error));
    }
    this.#renewing = false;
    this.#due = this.#due.earlier(this.#hinted);
    this.#hinted = undefined;
    this.#tick();
  }

  #renewed(sent: Mark, deadline: Deadline): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    notify(this.options.onRenewed, this.#left());
    if (deadline.left() > this.deadline.left()) {
      this.deadline = deadline;
    }
    this.#failures = 0;
    this.#due = this.#nextRenewal(sent);
    this.state.renewed();
  }

  #failed(error: PaddockError): void {
    if (this.#stopped.signal.aborted) {
      return;
    }
    notify(this.options.onRenewed, this.#left(), error);
    if (error.code === this.ref.kind.lost) {
      this.#lose(error);
      return;
    }
    const { ttlMs } = this.ref;
    this.#lastError = error;
    this.#due = new Deadline(mark(), backoff(this.#failures++, ttlMs / 50, Math.min(ttlMs / 10, maxRenewPauseMs), error));
    this.state.renewalFailed(error);
    notify(this.options.onRetry, error);
  }

  /** left returns the share of the TTL that is left until the end. */
  #left(): number {
    return (this.deadline.left() + this.ref.marginMs) / this.ref.ttlMs;
  }

  #lose(error: PaddockError): void {
    this.stop();
    this.state.lose(error);
  }

  #nextRenewal(after: Mark): Deadline {
    return new Deadline(after, (this.ref.ttlMs / 3) * (1 - Math.random() / 5));
  }

  #deadlineError(): PaddockError {
    const { lost, overdue } = this.ref.kind;
    const last = this.#failures > 0 ? this.#lastError : undefined;
    return new PaddockError(lost, last ? `${overdue} The last renewal failed: ${last.message}` : overdue, omitUndefined({ cause: last }));
  }
}
