import { PaddockError } from './error.js';

/**
 * withTimeout runs a call with a timeout in milliseconds. It rejects with `unknown_outcome` after the timeout and
 * with the signal's reason when the signal is aborted, in both cases immediately, even if the call does not react.
 */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const stop = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(() => controller.abort(timeoutError(ms)), ms);
  try {
    return await Promise.race([aborted(controller.signal), call(controller.signal)]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** aborted returns a promise that rejects with the signal's reason when it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function timeoutError(ms: number): PaddockError {
  return new PaddockError('unknown_outcome', `No response within ${Math.ceil(ms)} ms. ` +
    'The call may or may not have taken effect. Send the same call again to find out; do not treat the lease as lost.');
}
