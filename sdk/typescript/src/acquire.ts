import { Acquisition, type Grant } from './acquisition.js';
import { acquireOptions, checkLocks, checkOptions, client, expect } from './arguments.js';
import type { Paddock } from './client.js';
import { Deadline, mark, since } from './clock.js';
import { hasCode } from './error.js';
import { Lease } from './lease.js';
import { notify } from './notify.js';
import { resolveOptions, type AcquireOptions, type Options, type ResolvedOptions } from './options.js';
import { allowManyListeners, randomUUID } from './platform.js';
import type { LeaseRef } from './renewal.js';
import { backoff, sleep } from './retry.js';
import { leaseRef, type Locks } from './set.js';

/**
 * Acquires the lock and resolves with its lease, which then has most of its TTL left. With `waitMs` it waits in the
 * queue. An array of locks is acquired together, all or none: they are one lease, and nothing is held while it waits.
 * Release the lease when the work is done; otherwise it is renewed for as long as the process runs.
 *
 * Rejects with `lock_held` if the lock is not granted within `waitMs`; of several locks, its `blockers` are those in the
 * way. The code is `lock_frozen` if an operator has frozen the lock, and `already_done` if a release has closed it, see
 * `once`. Rejects with `session_lost` or `session_closed` if the session has ended; with the signal's reason if the signal is
 * aborted; with `unavailable` or `unknown_outcome` if the service cannot be reached within `retryMs`; and immediately with
 * any error that a retry cannot fix. Before it rejects, it gives up its places in the queues and any lease it was granted,
 * if the service can be reached.
 */
export async function acquire(paddock: Paddock, locks: Locks, options: Options = {}): Promise<Lease> {
  checkAcquire('acquire', paddock, locks, options);
  return acquireLease(paddock, locks, options, false, Lease);
}

/** checkAcquire throws a TypeError for arguments that the call cannot use. */
export function checkAcquire(call: string, paddock: Paddock, locks: Locks, options: Options): void {
  expect('paddock', paddock, client('acquire'));
  checkLocks(locks);
  checkOptions(call, options, acquireOptions);
}

/**
 * acquireLease implements acquire, guard, once and campaign. With forGuard, renewals keep the process running and the signal also
 * ends the work.
 */
export async function acquireLease<L extends Lease>(
  paddock: Paddock, locks: Locks, options: AcquireOptions, forGuard: boolean, Kind: new (...granted: ConstructorParameters<typeof Lease>) => L,
): Promise<L> {
  const began = mark();
  try {
    const resolved = await resolveOptions(options);
    const lease = await tryAcquire(paddock, locks, resolved, (ref, grant) => new Kind(ref, grant, resolved, forGuard));
    notify(options.onAcquired, since(began));
    return lease;
  } catch (error) {
    notify(options.onAcquired, since(began), error);
    throw error;
  }
}

/** tryAcquire acquires the lease, with retries. */
async function tryAcquire<L>(paddock: Paddock, locks: Locks, resolved: ResolvedOptions, leaseOf: (ref: LeaseRef, grant: Grant) => L): Promise<L> {
  const { waitMs, retryMs, signal, onRetry } = resolved;
  if (signal) {
    await allowManyListeners(signal);
  }
  const started = mark();
  const limits = { wait: new Deadline(started, waitMs), retry: new Deadline(started, Math.max(waitMs, retryMs)) };
  for (let losses = 0; ; losses++) {
    signal?.throwIfAborted();
    const ref = leaseRef(paddock, locks, await randomUUID(), resolved);
    try {
      return leaseOf(ref, await new Acquisition(ref, resolved, limits).run());
    } catch (error) {
      if (!hasCode(error, 'lease_lost') || error.ended === 'revoked' || limits.retry.passed()) {
        throw error;
      }
      notify(onRetry, error);
      await sleep(backoff(losses, 100, 5_000), signal ?? undefined);
    }
  }
}
