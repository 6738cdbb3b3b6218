import { acquireLease, checkAcquire } from './acquire.js';
import { expect, workOfGuard } from './arguments.js';
import type { Paddock } from './client.js';
import { changed, type PaddockError } from './error.js';
import { Lease } from './lease.js';
import type { Options } from './options.js';
import { finish } from './renewed.js';
import type { Locks } from './set.js';
import { asTask } from './task.js';

/** Work runs under a lease, and stops when its signal is aborted. */
export type Work<T> = (lease: Lease) => T | Promise<T>;

/**
 * Acquires the lock, or several together, runs the work, releases them, and resolves with the result of the work. The
 * work must stop when the lease's signal is aborted: guard cannot stop it, and waits until it ends.
 *
 * Rejects like `acquire` if the lock is not granted; with the error of the work if the work fails; and with
 * `lease_lost` if the lease was lost before the work ended, even if the work succeeded, because it may have
 * overlapped with another holder's. The `cause` of that error is then the error of the work, if there is one.
 */
export async function guard<T>(paddock: Paddock, locks: Locks, work: Work<T>): Promise<T>;
export async function guard<T>(paddock: Paddock, locks: Locks, options: Options, work: Work<T>): Promise<T>;
export async function guard<T>(paddock: Paddock, locks: Locks, ...rest: [Work<T>] | [Options, Work<T>]): Promise<T> {
  const [options = {}, work] = typeof rest[0] === 'function' && rest[1] === undefined ? [{}, rest[0]] : rest as [Options, Work<T>];
  checkAcquire('guard', paddock, locks, options);
  expect('work', work, workOfGuard);
  const lease = await acquireLease(paddock, locks, options, true, Lease);
  let result: T;
  try {
    result = await asTask(lease.taskId, () => work(lease));
  } catch (error) {
    throw withCause(await finish(lease), error);
  }
  const loss = await finish(lease);
  if (loss) {
    throw loss;
  }
  return result;
}

/** withCause returns the loss with the work's error as its cause, or the work's error if the lease was not lost. */
export function withCause(loss: PaddockError | undefined, error: unknown): unknown {
  if (loss === undefined || loss === error) {
    return error;
  }
  return changed(loss, { cause: error });
}
