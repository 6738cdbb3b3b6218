import { Deadline, mark } from './clock.js';
import type { Closing, Renewable } from './renewal.js';
import { backoff, isRetryable, sleep } from './retry.js';

/** releaseTimeoutMs is how long a release or a close is retried while the service does not respond. */
export const releaseTimeoutMs = 5_000;

/** maxReleaseAttemptMs is the timeout of one attempt. */
const maxReleaseAttemptMs = 2_000;

/**
 * endAtService releases the lease, gives up the place in the queue that the lease_id has, or closes the session. It takes
 * no signal, since it often runs after one was aborted. It rejects with `lease_lost` or `session_lost` if it ended in
 * another way, and with another PaddockError if the service does not respond within the timeout.
 */
export async function endAtService(ref: Pick<Renewable, 'end'>, timeoutMs = releaseTimeoutMs, closing?: Closing): Promise<void> {
  const until = new Deadline(mark(), timeoutMs);
  for (let failures = 0; ; failures++) {
    try {
      return await ref.end({ timeoutMs: Math.min(until.left(), maxReleaseAttemptMs) }, closing);
    } catch (error) {
      const ms = backoff(failures, 50, 1_000, error);
      if (!isRetryable(error) || until.left() <= ms) {
        throw error;
      }
      await sleep(ms, undefined);
    }
  }
}
