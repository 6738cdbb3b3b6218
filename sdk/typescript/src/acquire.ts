import { checkName } from './check.js';
import type { Paddock } from './client.js';
import { Deadline, mark } from './clock.js';
import { hasCode } from './error.js';
import { Lease } from './lease.js';
import { resolve, type Options } from './options.js';
import { Place } from './place.js';
import { expectMany, randomUUID } from './platform.js';
import { backoff, pause } from './retry.js';
import { tell } from './tell.js';

/**
 * Acquires the lock, waiting for it in the queue if `waitMs` says so, and resolves with the lease once that is sure to have
 * most of its TTL left. Release it when the work is done, or it is renewed for as long as the process runs.
 *
 * It rejects with `lock_held` when somebody else has the lock and the wait is over; with the signal's reason when that is
 * aborted; with `unavailable` or `unknown_outcome` when the service cannot be reached for so long; at once with what
 * the service refuses for good. By then the place, and a lease that came meanwhile, has been given up if the service answers.
 */
export async function acquire(paddock: Paddock, name: string, options: Options = {}): Promise<Lease> {
  return take(paddock, name, options, false);
}

/** take acquires. With work that waits for the lease, the renewals keep the process running and the signal ends the work, too. */
export async function take(paddock: Paddock, name: string, options: Options, forWork: boolean): Promise<Lease> {
  checkName('name', name);
  const wanted = await resolve(options);
  const { ttlMs, marginMs, waitMs, retryMs, signal, onRetry } = wanted;
  if (signal) {
    await expectMany(signal);
  }
  const began = mark();
  const patience = { waiting: new Deadline(began, waitMs), trying: new Deadline(began, Math.max(waitMs, retryMs)) };
  for (let losses = 0; ; losses++) {
    signal?.throwIfAborted();
    const claim = { paddock, name, leaseId: await randomUUID(), ttlMs, marginMs };
    try {
      const { lease, deadline } = await new Place(claim, wanted, patience).take();
      return new Lease(claim, lease, deadline, wanted, forWork);
    } catch (error) {
      if (!hasCode(error, 'lease_lost') || error.ended === 'revoked' || patience.trying.over()) {
        throw error;
      }
      tell(onRetry, error);
      await pause(backoff(losses, 100, 5_000), signal ?? undefined);
    }
  }
}
