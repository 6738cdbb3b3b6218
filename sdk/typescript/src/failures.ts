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
    const code = causesOf(cause).map((c) => c.code ?? '').find(isOfCertificate);
    const why = code === undefined
      ? 'The service cannot be reached.'
      : `The certificate of the service is not trusted (${code}), so the request was not sent. Start Node with ` +
        'NODE_EXTRA_CA_CERTS=FILE, the PEM certificate of its authority, and use a host that the certificate names.';
    return new PaddockError('unavailable', `${why} ${unchanged}`, { cause });
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
  const causes = causesOf(error);
  return causes.length > 0 && causes.every(({ code, syscall }) =>
    syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT' || isOfCertificate(code ?? ''));
}

function causesOf(error: unknown): SystemError[] {
  const cause = error instanceof Error ? error.cause : undefined;
  const causes: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.map((c) => (c ?? {}) as SystemError);
}

/** isOfCertificate reports whether Node refuses the certificate of a server with this code, before it sends the request. */
function isOfCertificate(code: string): boolean {
  return /^(ERR_TLS_CERT_|CERT_|SELF_SIGNED_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET_ISSUER|DECODE_ISSUER))/.test(code);
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
