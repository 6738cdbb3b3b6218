import type { CallOptions } from './client.js';
import { type Deadline, mark, since } from './clock.js';
import { hasCode, PaddockError, wasCut } from './error.js';
import { notify } from './notify.js';
import type { ResolvedOptions } from './options.js';
import { endAtService } from './release.js';
import { attemptTimeoutMs, deadlineOf, maxHoldDeadline, renewOnce, type LeaseRef } from './renewal.js';
import { backoff, isRetryable, sleep } from './retry.js';
import type { LeaseAnswer } from './set.js';
import { maxWaitMs, minWaitMs } from './waits.js';

/**
 * waitTtlMs bounds the TTL of a lease that is granted to a call that waits. The first renewal asks for the whole TTL. If
 * the process was stopped while it waited, the lock is free after this time.
 */
export const waitTtlMs = 5_000;

/** responseTimeoutMs is how long a response may take beyond the wait. */
export const responseTimeoutMs = 10_000;

/** abandonTimeoutMs is how long giving up a place may take. */
export const abandonTimeoutMs = 3_000;

/** Limits say until when to wait for the lock and until when to retry failed calls. */
export interface Limits {
  readonly wait: Deadline;
  readonly retry: Deadline;
}

/** A Grant is a lease and the deadline until which to trust it; in a session, as long as that is trusted, too. */
export interface Grant {
  readonly lease: LeaseAnswer;
  readonly deadline: Deadline;
  /** The number of revoked leases of the session when the lease was asked for. */
  readonly revokedLeases: number;
}

/**
 * An Acquisition acquires one lease. All its calls have the same lease_id, so a retry after a lost response finds the
 * same lease or the same place in the queue.
 */
export class Acquisition {
  readonly #signal: AbortSignal | undefined;
  #sent = false; // whether the service may have received the lease_id
  #waits: boolean; // whether the next call waits; otherwise it is a try for the whole TTL: a free lock costs no renewal
  #waitTtlMs: number; // the TTL in calls that wait

  constructor(
    private readonly ref: LeaseRef,
    private readonly options: ResolvedOptions,
    private readonly limits: Limits,
  ) {
    this.#signal = options.signal ?? undefined;
    this.#waitTtlMs = Math.min(ref.ttlMs, waitTtlMs);
    this.#waits = options.session !== undefined || this.#waitTtlMs === ref.ttlMs;
  }

  /**
   * run resolves with a lease that has most of its TTL left. If it rejects, it has given up the place and the lease.
   */
  async run(): Promise<Grant> {
    try {
      const grant = await this.#acquire();
      if (this.options.session) {
        this.options.session.check();
        return grant;
      }
      return { ...grant, deadline: await this.#renewIfOld(grant) };
    } catch (error) {
      if (this.#sent && (this.#signal?.aborted || !leavesNothing(error))) { // the reason of the signal may be any error
        await this.#abandon();
      }
      throw error;
    }
  }

  async #acquire(): Promise<Grant> {
    for (let failures = 0; ; failures++) {
      const left = this.#waits ? Math.max(this.limits.wait.left(), 0) : 0;
      // Waits that a crash made begin together must not end together, since a waiter is skipped between two calls.
      const longest = (this.ref.paddock.common?.waits.longest() ?? maxWaitMs) * (1 - Math.random() / 5);
      const waitMs = Math.ceil(Math.min(left, longest));
      this.options.session?.check();
      const sent = mark();
      const revokedLeases = this.options.session?.revokedLeases ?? 0;
      try {
        const lease = await this.#call(waitMs, left > waitMs);
        const deadline = (this.options.session ? maxHoldDeadline : deadlineOf)(sent, lease, this.ref.marginMs);
        return { lease, deadline, revokedLeases };
      } catch (error) {
        if (this.#isNotNow(error) && !this.#waits && !this.limits.wait.passed()) {
          this.#waits = true;
          failures = -1;
        } else if (hasCode(error, 'invalid_request') && error.field === 'ttlMs' && waitMs > 0 && this.#waitTtlMs < this.ref.ttlMs) {
          this.#waitTtlMs = this.ref.ttlMs; // the service allows no short TTL
        } else if (this.#isNotNow(error) && left > waitMs) {
          failures = await this.#keepWaiting(failures, since(sent) < waitMs / 2);
        } else if (wasCut(error)) {
          failures = -1; // back at once: the waiter is skipped until it returns
        } else {
          if (waitMs > 0 && since(sent) >= minWaitMs) {
            failures = 0;
          }
          await this.#pause(failures, error);
        }
      }
    }
  }

  /**
   * isNotNow reports whether the lock cannot be granted yet: it is held, frozen or closed. Work that needs to be done only once
   * does not wait until the lock opens.
   */
  #isNotNow(error: unknown): boolean {
    return hasCode(error, 'lock_held', 'lock_frozen') || (hasCode(error, 'already_done') && !this.options.request.once);
  }

  async #call(waitMs: number, keepPlace: boolean): Promise<Grant['lease']> {
    const request = {
      ...this.options.request,
      ...(waitMs > 0 && { wait_ms: waitMs, keep_place: keepPlace }),
      ...(waitMs > 0 && !this.options.session && { ttl_ms: this.#waitTtlMs }),
    };
    try {
      const lease = await this.ref.acquire(request, this.#within(waitMs + responseTimeoutMs));
      this.#sent = true;
      return lease;
    } catch (error) {
      this.#sent ||= !notSent(error);
      throw error;
    }
  }

  #within(timeoutMs: number): CallOptions {
    return { timeoutMs, signal: this.#signal ?? null };
  }

  /** keepWaiting returns the number of consecutive failures; a response that came too early counts as one. */
  async #keepWaiting(failures: number, early: boolean): Promise<number> {
    if (!early) {
      return -1;
    }
    await sleep(backoff(failures, 100, 5_000), this.#signal);
    return failures;
  }

  /**
   * renewIfOld renews a lease whose response took long, or that has not its whole TTL, as after every wait in the queue.
   * It returns the deadline.
   */
  async #renewIfOld({ lease, deadline }: Grant): Promise<Deadline> {
    const { ttlMs, marginMs } = this.ref;
    if (lease.ttl_ms >= ttlMs && deadline.left() > (ttlMs - marginMs) * 0.9) {
      return deadline;
    }
    for (let failures = 0; ; failures++) {
      try {
        const renewed = await renewOnce(this.ref, this.#within(attemptTimeoutMs(ttlMs, 0)), { ttl_ms: ttlMs });
        if (!renewed.passed()) {
          return renewed;
        }
        throw tooSlow(ttlMs);
      } catch (error) {
        await this.#pause(failures, error);
      }
    }
  }

  /** pause waits until the failed call may be retried, or throws the error if it may not. */
  async #pause(failures: number, error: unknown): Promise<void> {
    const left = this.limits.retry.left();
    if (!isRetryable(error) || left <= 0) {
      throw error;
    }
    notify(this.options.onRetry, error);
    await sleep(Math.min(backoff(failures, 100, 5_000, error), left), this.#signal);
  }

  /**
   * abandon gives up the place or the lease. If the service cannot be reached, a place ends within a minute
   * and a lease with its TTL.
   */
  async #abandon(): Promise<void> {
    try {
      await endAtService(this.ref, abandonTimeoutMs);
    } catch {
      // The caller gets the error of the acquire.
    }
  }
}

/** notSent reports whether the request did not reach the service. */
function notSent(error: unknown): boolean {
  return hasCode(error, 'unavailable') && error.status === undefined;
}

/** leavesNothing reports whether, after this error, the service has neither a lease nor a place for the lease_id. */
function leavesNothing(error: unknown): boolean {
  if (hasCode(error, 'session_lost', 'session_closed')) {
    return error.status !== undefined; // otherwise only this process knows
  }
  return error instanceof PaddockError && error.placeKeptMs === undefined && !hasCode(error, 'unavailable', 'unknown_outcome', 'internal');
}

/** tooSlow returns the error of a lease or session that has ended when the response arrives. */
export function tooSlow(ttlMs: number): PaddockError {
  return new PaddockError('unavailable',
    `The service takes longer to respond than the TTL of ${ttlMs} ms. Use a greater ttlMs.`);
}
