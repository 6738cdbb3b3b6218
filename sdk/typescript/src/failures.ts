import { PaddockError, type ErrorFields } from './error.js';
import { omitUndefined } from './omit.js';

const unchanged = 'Nothing was changed. Try again.';
const maybeChanged = 'The call may or may not have taken effect. Send the same call again to find out; ' +
  'do not treat the lease as lost.';

/**
 * lostResponse returns the error of a call whose response did not arrive completely. Browsers do not report whether a
 * request was sent, so there the outcome of a change is always unknown.
 */
export function lostResponse(changes: boolean, cause: unknown): PaddockError {
  if (notSent(cause)) {
    return new PaddockError('unavailable', `The service cannot be reached. ${unchanged}`, { cause });
  }
  return changes
    ? new PaddockError('unknown_outcome', `The response was lost. ${maybeChanged}`, { cause })
    : new PaddockError('unavailable', `The response was lost. ${unchanged}`, { cause });
}

interface SystemError {
  readonly code?: string;
  readonly syscall?: string;
}

/**
 * notSent reports whether the connection failed before the request was sent. Node's fetch says so in the cause of its
 * error.
 */
export function notSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const causes: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.length > 0 && causes.every((c) => {
    const { code, syscall } = (c ?? {}) as SystemError;
    return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
  });
}

/**
 * isPaddock reports whether a Paddock sent the response, whatever its status. In a browser, a service of another origin
 * must expose the header.
 */
export function isPaddock(response: Response): boolean {
  return response.headers.get('Paddock-Api') === 'v1';
}

/**
 * notPaddock returns the error of a call that was not answered by Paddock but by a proxy or another server. It
 * repeats none of the response's text, which may echo the request.
 */
export function notPaddock(changes: boolean, response: Response, cause?: unknown): PaddockError {
  const status = response.status;
  let detail = `The response (HTTP ${status}, content type "${mediaType(response)}") is not from Paddock: ` +
    'a proxy sent it, or the base URL is wrong. ';
  if (isRedirect(response)) {
    detail += 'Redirects are not followed: use the final URL as base URL. ';
  }
  const unknown = changes && !rejectedByProxy.has(status);
  const fields: ErrorFields = omitUndefined({ status: status || undefined, retryAfterMs: retryAfterMs(response), cause });
  return new PaddockError(unknown ? 'unknown_outcome' : 'unavailable', detail + (unknown ? maybeChanged : unchanged), fields);
}

/** isRedirect reports whether the response is a redirect. Browsers show only its type. */
function isRedirect(response: Response): boolean {
  return response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400);
}

/**
 * rejectedByProxy are the statuses with which a proxy rejects a request before it forwards it. With any other status,
 * the proxy may have forwarded the request and timed out.
 */
const rejectedByProxy: ReadonlySet<number> = new Set([401, 403, 404, 405, 413, 415, 429, 431]);

/** retryAfterMs returns the header Retry-After in milliseconds if it is a number of seconds. */
export function retryAfterMs(response: Response): number | undefined {
  const seconds = response.headers.get('Retry-After') ?? '';
  return /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}

/** mediaType returns the content type without its parameters. */
export function mediaType(response: Response): string {
  return (response.headers.get('Content-Type') ?? '').split(';', 1).join('').trim().toLowerCase();
}
