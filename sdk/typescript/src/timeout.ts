import { PaddockError } from './error.js';

/**
 * withTimeout runs a call with a timeout in milliseconds; Infinity is none. It rejects with `unknown_outcome` after the
 * timeout and with the signal's reason when the signal is aborted, in both cases immediately, even if the call does not
 * react. With outlives, the signal that the call got still follows the given one after the call.
 */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
  outlives = false,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const timer = ms === Infinity ? undefined : setTimeout(() => controller.abort(timeoutError(ms)), Math.max(ms, 0));
  try {
    return await Promise.race([aborted(controller.signal), call(controller.signal)]);
  } finally {
    clearTimeout(timer);
    if (!outlives) {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** aborted returns a promise that rejects with the signal's reason when it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function timeoutError(ms: number): PaddockError {
  return new PaddockError('unknown_outcome', `No response within ${Math.max(Math.ceil(ms), 0)} ms. ` +
    'The call may or may not have taken effect. Send the same call again to find out; do not treat the lease as lost.');
}
