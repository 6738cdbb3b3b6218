import { take } from './acquire.js';
import type { Paddock } from './client.js';
import { PaddockError } from './error.js';
import { finish, type Lease } from './lease.js';
import type { Options } from './options.js';

/**
 * Acquires the lock, does the work under the lease, releases it, and resolves with what the work did. The
 * work is to stop when the lease's signal is aborted; nobody else can make it, and `guard` waits until it has ended.
 *
 * It rejects as `acquire` does if the lock cannot be had; with the work's error if that fails; and with `lease_lost` if
 * the lease was lost before the work had ended, even if it succeeded, since it may have overlapped with somebody
 * else's. What the work said is the cause of that one then.
 */
export async function guard<T>(
  paddock: Paddock,
  name: string,
  options: Options,
  work: (lease: Lease) => T | Promise<T>,
): Promise<T> {
  const lease = await take(paddock, name, options, true);
  let result: T;
  try {
    result = await work(lease);
  } catch (error) {
    throw both(await finish(lease), error);
  }
  const lost = await finish(lease);
  if (lost) {
    throw lost;
  }
  return result;
}

/** both returns the error of work that failed, and under whose lease. */
function both(lost: PaddockError | undefined, error: unknown): unknown {
  if (lost === undefined || lost === error) {
    return error;
  }
  const { name: _name, code, detail, ...facts } = lost;
  return new PaddockError(code, detail, { ...facts, cause: error });
}
