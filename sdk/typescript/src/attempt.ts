import { PaddockError } from './error.js';

/**
 * attempt makes a call that may take so many milliseconds. It rejects with `unknown_outcome` after
 * that, and with the signal's reason when the signal is aborted: at once, whatever the call does then.
 */
export async function attempt<T>(
  ms: number,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const over = new AbortController();
  const stop = () => over.abort(signal?.reason);
  signal?.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(() => over.abort(silence(ms)), ms);
  try {
    return await Promise.race([aborted(over.signal), call(over.signal)]);
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

function silence(ms: number): PaddockError {
  return new PaddockError('unknown_outcome', `No answer came within ${Math.ceil(ms)} ms. ` +
    'It may or may not have been done; send the same call again to find out, and do not take the lease for lost.');
}
