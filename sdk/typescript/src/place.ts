import { attempt } from './attempt.js';
import { type Deadline, mark, since } from './clock.js';
import { hasCode, PaddockError } from './error.js';
import type { Wanted } from './options.js';
import { giveBack } from './release.js';
import { attemptMs, deadlineOf, renewOnce, type Claim } from './renewal.js';
import { backoff, maySendAgain, pause } from './retry.js';
import type { components } from './schema.js';
import { tell } from './tell.js';

/** longestCallMs is for how long one call waits in the queue. Longer waits are several calls, at one place. */
export const longestCallMs = 25_000;

/** answerWithinMs is how long an answer may take beyond the wait. */
export const answerWithinMs = 10_000;

/** leaveWithinMs is how long giving up a place may take. */
export const leaveWithinMs = 3_000;

/** Patience is until when to wait for the lock, and until when to send again what failed. */
export interface Patience {
  readonly waiting: Deadline;
  readonly trying: Deadline;
}

/** A Grant is a lease and until when to trust it. */
export interface Grant {
  readonly lease: components['schemas']['Lease'];
  readonly deadline: Deadline;
}

/**
 * A Place is what one lease_id has: a place in the queue, then a lease. Every call of it has the same lease_id, so that
 * a lost answer is asked for again and no place is lost.
 */
export class Place {
  readonly #signal: AbortSignal | undefined;
  #asked = false; // whether the service may have heard of the lease_id

  constructor(
    private readonly claim: Claim,
    private readonly wanted: Wanted,
    private readonly patience: Patience,
  ) {
    this.#signal = wanted.signal ?? undefined;
  }

  /** take resolves with a lease that has most of its TTL left, or leaves nothing behind. */
  async take(): Promise<Grant> {
    try {
      const grant = await this.#ask();
      return { ...grant, deadline: await this.#freshen(grant.deadline) };
    } catch (error) {
      if (this.#asked && !refused(error)) {
        await this.#leave();
      }
      throw error;
    }
  }

  async #ask(): Promise<Grant> {
    for (let failures = 0; ; failures++) {
      const left = Math.max(this.patience.waiting.left(), 0);
      const waitMs = Math.ceil(Math.min(left, longestCallMs));
      const asked = mark();
      try {
        const lease = await this.#call(waitMs, left > waitMs);
        return { lease, deadline: deadlineOf(asked, lease, this.claim.marginMs) };
      } catch (error) {
        if (hasCode(error, 'lock_held') && left > waitMs) {
          failures = await this.#waitOn(failures, since(asked) < waitMs / 2);
        } else {
          await this.#pause(failures, error);
        }
      }
    }
  }

  async #call(waitMs: number, keep: boolean): Promise<Grant['lease']> {
    const { paddock, name, leaseId } = this.claim;
    const body = {
      ...this.wanted.request,
      lease_id: leaseId,
      ...(waitMs > 0 && { wait_ms: waitMs, keep_place: keep }),
    };
    try {
      const call = (signal: AbortSignal) => paddock.acquire(name, body, { signal });
      const lease = await attempt(waitMs + answerWithinMs, this.#signal, call);
      this.#asked = true;
      return lease;
    } catch (error) {
      this.#asked ||= !unsent(error);
      throw error;
    }
  }

  /** waitOn returns the failures in a row: an answer that came too early is one. */
  async #waitOn(failures: number, early: boolean): Promise<number> {
    if (!early) {
      return -1;
    }
    await pause(backoff(failures, 100, 5_000), this.#signal);
    return failures;
  }

  /** freshen renews a grant that was long on its way, as all that were waited for are, and counts from that. */
  async #freshen(deadline: Deadline): Promise<Deadline> {
    const { ttlMs, marginMs } = this.claim;
    if (deadline.left() > (ttlMs - marginMs) * 0.9) {
      return deadline;
    }
    for (let failures = 0; ; failures++) {
      try {
        const renewed = await renewOnce(this.claim, attemptMs(ttlMs, 0), this.#signal);
        if (!renewed.over()) {
          return renewed;
        }
        throw slow(ttlMs);
      } catch (error) {
        await this.#pause(failures, error);
      }
    }
  }

  /** pause waits until what failed may be sent again, or throws the error if it may not. */
  async #pause(failures: number, error: unknown): Promise<void> {
    const left = this.patience.trying.left();
    if (!maySendAgain(error) || left <= 0) {
      throw error;
    }
    tell(this.wanted.onRetry, error);
    await pause(Math.min(backoff(failures, 100, 5_000, error), left), this.#signal);
  }

  /** leave gives up what there may be. If nobody answers, a place ends within seconds and a lease with its TTL. */
  async #leave(): Promise<void> {
    try {
      await giveBack(this.claim, leaveWithinMs);
    } catch {
      // Why the lock was not had is what the caller is told.
    }
  }
}

/** unsent returns whether the error says that the service never saw the request. */
function unsent(error: unknown): boolean {
  return hasCode(error, 'unavailable') && error.status === undefined;
}

/** refused returns whether the error says that there is nothing under the lease_id. */
function refused(error: unknown): boolean {
  return error instanceof PaddockError && error.placeKeptMs === undefined && !hasCode(error, 'unavailable', 'unknown_outcome', 'internal');
}

function slow(ttlMs: number): PaddockError {
  return new PaddockError('unavailable',
    `The service takes longer to answer than the lease lives, ${ttlMs} ms. Ask for a longer one with ttlMs.`);
}
