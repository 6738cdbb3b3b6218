import { PaddockError, type Facts } from './error.js';
import { given } from './given.js';

const nothingDone = 'Nothing was changed; try again.';
const maybeDone =
  'It may or may not have been done; send the same call again to find out, and do not take the lease for lost.';

/**
 * lost returns the error of a call whose answer did not come, or not whole. Browsers do not say whether
 * anything was sent, so there a change is always of unknown outcome.
 */
export function lost(changes: boolean, cause: unknown): PaddockError {
  if (unsent(cause)) {
    return new PaddockError('unavailable', `The service cannot be reached. ${nothingDone}`, { cause });
  }
  return changes
    ? new PaddockError('unknown_outcome', `The answer was lost on the way. ${maybeDone}`, { cause })
    : new PaddockError('unavailable', `The answer was lost on the way. ${nothingDone}`, { cause });
}

interface SystemError {
  readonly code?: string;
  readonly syscall?: string;
}

/** unsent returns whether fetch says that there was no connection, as Node's does in the cause of its error. */
function unsent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const causes: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.length > 0 && causes.every((c) => {
    const { code, syscall } = (c ?? {}) as SystemError;
    return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
  });
}

/**
 * foreign returns the error of a call that something else than Paddock answered: a proxy on the way,
 * or another server. Nothing of its text is repeated, since it may echo the request.
 */
export function foreign(changes: boolean, response: Response, cause?: unknown): PaddockError {
  const status = response.status;
  let detail = `The answer, HTTP ${status} with content type "${mediaType(response)}", is none of Paddock's: ` +
    'a proxy on the way gave it, or the base URL is that of another server. ';
  if (redirects(response)) {
    detail += 'Redirects are not followed: give the final address as base URL. ';
  }
  const unknown = changes && !refusedAhead.has(status);
  const facts: Facts = given({ status: status || undefined, retryAfterMs: retryAfterMs(response), cause });
  return new PaddockError(unknown ? 'unknown_outcome' : 'unavailable', detail + (unknown ? maybeDone : nothingDone), facts);
}

/** redirects returns whether the answer is a redirect, which browsers do not show more of. */
function redirects(response: Response): boolean {
  return response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400);
}

/**
 * refusedAhead are the statuses with which something in front of the service turns a request down before it
 * hands it on. Any other may come from one that did hand it on and then lost patience.
 */
const refusedAhead: ReadonlySet<number> = new Set([401, 403, 404, 405, 413, 415, 429, 431]);

/** retryAfterMs returns the header Retry-After where it counts seconds. */
export function retryAfterMs(response: Response): number | undefined {
  const seconds = response.headers.get('Retry-After') ?? '';
  return /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}

/** mediaType returns the content type without its parameters. */
export function mediaType(response: Response): string {
  return (response.headers.get('Content-Type') ?? '').split(';', 1).join('').trim().toLowerCase();
}
