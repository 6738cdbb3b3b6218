import { hasCode, PaddockError } from './error.js';

/**
 * isRetryable reports whether a failed call may be sent again: it failed for a temporary reason and was not rejected.
 * A wrong address, an invalid key or a missing permission is not temporary.
 */
export function isRetryable(error: unknown): error is PaddockError {
  return hasCode(error, 'unavailable', 'unknown_outcome', 'internal', 'too_many_waiters', 'rate_limited') && !isRejection(error.status ?? 0);
}

function isRejection(status: number): boolean {
  return status >= 300 && status < 500 && ![408, 425, 429].includes(status);
}

/** sleep resolves after the milliseconds, and rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
 * backoff returns the pause after a failure, in milliseconds: it doubles with each failure, up to maxMs, and is then
 * reduced by up to half at random. It is at least the error's `retryAfterMs`, but never more than maxMs.
 */
export function backoff(failures: number, minMs: number, maxMs: number, error?: unknown): number {
  const requested = error instanceof PaddockError ? error.retryAfterMs ?? 0 : 0;
  const ms = Math.min(maxMs, minMs * 2 ** failures);
  return Math.max(ms * (1 - Math.random() / 2), Math.min(requested, maxMs));
}

/** toPaddockError returns the error as a PaddockError. For any other error the outcome of the call is unknown. */
export function toPaddockError(error: unknown): PaddockError {
  if (error instanceof PaddockError) {
    return error;
  }
  return new PaddockError('unknown_outcome', `The call failed: ${String(error)}. The call may or may not have taken effect.`, { cause: error });
}
