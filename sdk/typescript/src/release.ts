import { attempt } from './attempt.js';
import { Deadline, mark } from './clock.js';
import type { Claim } from './renewal.js';
import { backoff, maySendAgain, pause } from './retry.js';

/** releaseWithinMs is for how long a release is sent again while nobody answers. */
export const releaseWithinMs = 5_000;

/** longestReleaseAttemptMs is how long at most one try of it may take. */
const longestReleaseAttemptMs = 2_000;

/**
 * giveBack gives up what there is under the lease_id: a lease, a place in the queue. It heeds no signal, since it is what
 * comes after one; it rejects with `lease_lost` if the lease had ended otherwise, and with another PaddockError
 * when nobody answers within the milliseconds.
 */
export async function giveBack({ paddock, name, leaseId }: Claim, withinMs = releaseWithinMs): Promise<void> {
  const until = new Deadline(mark(), withinMs);
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(Math.min(until.left(), longestReleaseAttemptMs), undefined, (signal) =>
        paddock.release(name, { lease_id: leaseId }, { signal }));
    } catch (error) {
      const ms = backoff(failures, 50, 1_000, error);
      if (!maySendAgain(error) || until.left() <= ms) {
        throw error;
      }
      await pause(ms, undefined);
    }
  }
}
