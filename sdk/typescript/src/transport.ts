import { PaddockError, type Blocker, type DeadlockStep, type ErrorFields } from './error.js';
import { isPaddock, lostResponse, mediaType, notPaddock, retryAfterMs } from './failures.js';
import type { KeySource } from './key.js';
import { omitUndefined } from './omit.js';
import type { components } from './schema.js';

/**
 * transport returns a fetch function that sends the key and resolves only with a successful response of Paddock whose JSON was read
 * completely. It rejects with a PaddockError otherwise, or with the signal's reason if the signal was aborted.
 */
export function transport(send: (request: Request) => Promise<Response>, key: KeySource): (request: Request) => Promise<Response> {
  return async (request) => {
    const changes = isChange(request);
    try {
      const response = await sendWithKey(send, key, request);
      if (!isPaddock(response)) {
        throw notPaddock(changes, response);
      }
      if (response.status === 304 || (response.ok && mediaType(response) !== 'application/json')) {
        return withoutJson(changes, response);
      }
      const text = await response.text();
      if (response.ok) {
        return withJson(changes, response, text);
      }
      throw problemError(changes, response, text);
    } catch (error) {
      request.signal.throwIfAborted();
      throw error instanceof PaddockError ? error : lostResponse(changes, error);
    }
  };
}

/** sendWithKey sends the request; once more if the service refuses the key and there is another one meanwhile. */
async function sendWithKey(send: (request: Request) => Promise<Response>, key: KeySource, request: Request): Promise<Response> {
  const first = await key.read(false);
  const again = key.changes ? request.clone() : undefined;
  if (first !== undefined) {
    request.headers.set('Authorization', `Bearer ${first}`);
  }
  const response = await send(request);
  const second = again && response.status === 401 && isPaddock(response) ? await key.read(true) : first;
  if (!again || second === first) {
    return response;
  }
  again.headers.set('Authorization', `Bearer ${second}`);
  return send(again);
}

/** isChange reports whether the request can change something. If its response is lost, the outcome is unknown. */
function isChange(request: Request): boolean {
  return request.method !== 'GET' && !request.url.endsWith('/v1/tokens/verify');
}

/** withoutJson returns a response without JSON, if Paddock has such a response. */
function withoutJson(changes: boolean, response: Response): Response {
  const types = ['text/event-stream', 'application/yaml'];
  if ([204, 304].includes(response.status) || types.includes(mediaType(response))) {
    return response;
  }
  throw notPaddock(changes, response);
}

/** withJson returns a copy of a successful response whose JSON is complete. */
function withJson(changes: boolean, response: Response, text: string): Response {
  try {
    JSON.parse(text);
  } catch (error) {
    throw notPaddock(changes, response, error);
  }
  const { status, statusText, headers } = response;
  return new Response(text, { status, statusText, headers });
}

/** problemError returns the error for an unsuccessful response. */
function problemError(changes: boolean, response: Response, text: string): PaddockError {
  if (mediaType(response) !== 'application/problem+json') {
    return notPaddock(changes, response);
  }
  let problem: Partial<Problem> | null;
  try {
    problem = JSON.parse(text) as Partial<Problem> | null;
  } catch (error) {
    return notPaddock(changes, response, error);
  }
  if (typeof problem?.code !== 'string' || (response.status >= 500 && !serverErrors.includes(problem.code))) {
    return notPaddock(changes, response, new Error('the problem document has no code of Paddock'));
  }
  return errorOf(problem as ProblemWithCode, response.status, retryAfterMs(response));
}

type Problem = components['schemas']['Problem'];
type ProblemWithCode = Partial<Problem> & Pick<Problem, 'code'>;

/** errorOf returns the error for a problem document. */
export function errorOf(problem: ProblemWithCode, status: number, retryMs?: number): PaddockError {
  return new PaddockError(problem.code, problem.detail ?? problem.title ?? `HTTP ${status}`, fieldsOf(problem, status, retryMs));
}

function blockerOf({ name, holder, retry_after_ms, ahead }: components['schemas']['BlockedLock']): Blocker {
  return { name, retryAfterMs: retry_after_ms, ...omitUndefined({ holder, waitersAhead: ahead }) };
}

function stepOf({ name, holder, waits_for, ahead }: components['schemas']['DeadlockStep']): DeadlockStep {
  return { name, holder, waitsFor: waits_for, ...omitUndefined({ ahead }) };
}

/** serverErrors are the codes that Paddock sends with a 5xx status. */
const serverErrors: readonly Problem['code'][] = ['unavailable', 'unknown_outcome', 'internal'];

function fieldsOf(p: Partial<Problem>, status: number, retryMs: number | undefined): ErrorFields {
  return omitUndefined({
    status,
    requestId: p.request_id,
    field: p.pointer?.replace(/^\//, ''),
    holder: p.holder,
    retryAfterMs: p.retry_after_ms ?? retryMs,
    waitersAhead: p.waiters_ahead,
    blockers: p.blockers?.map(blockerOf),
    cycle: p.cycle?.map(stepOf),
    set: p.set,
    placeKeptMs: p.place_kept_ms,
    capacity: p.capacity,
    token: p.fencing_token,
    newestToken: p.newest_token,
    version: p.version,
    ended: p.ended,
    endedAt: p.ended_at === undefined ? undefined : new Date(p.ended_at),
    reason: p.reason,
  });
}
