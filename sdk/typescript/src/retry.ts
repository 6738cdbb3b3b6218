import { hasCode, PaddockError } from './error.js';

/**
 * maySendAgain returns whether the call that failed so may be sent again: it was not refused, the service, or
 * something on the way, only could not do it now. What a wrong address, a bad key or a lack of rights leads to is no such thing.
 */
export function maySendAgain(error: unknown): error is PaddockError {
  return hasCode(error, 'unavailable', 'unknown_outcome', 'internal', 'too_many_waiters', 'rate_limited') && !turnedDown(error.status ?? 0);
}

function turnedDown(status: number): boolean {
  return status >= 300 && status < 500 && ![408, 425, 429].includes(status);
}

/** pause resolves after so many milliseconds, and rejects with the signal's reason when it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * backoff returns for how long to pause after a failure that so many others preceded: twice as
 * long each time, up to the longest, and up to half of it taken off at random. The `retryAfterMs` of the
 * error is waited for as well, but not beyond the longest.
 */
export function backoff(failures: number, shortestMs: number, longestMs: number, error?: unknown): number {
  const wish = error instanceof PaddockError ? error.retryAfterMs ?? 0 : 0;
  const ms = Math.min(longestMs, shortestMs * 2 ** failures);
  return Math.max(ms * (1 - Math.random() / 2), Math.min(wish, longestMs));
}

/** asError returns the error as one of Paddock's. What is none says of a call that its outcome is not known. */
export function asError(error: unknown): PaddockError {
  if (error instanceof PaddockError) {
    return error;
  }
  return new PaddockError('unknown_outcome', `The call failed: ${String(error)}. It may or may not have been done.`, { cause: error });
}
