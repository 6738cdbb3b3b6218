import { PaddockError, type Facts } from './error.js';
import { given } from './given.js';
import { foreign, lost, mediaType, retryAfterMs } from './lost.js';
import type { components } from './schema.js';

/**
 * transport returns a fetch that resolves with a success of Paddock's only, JSON being read to its end,
 * and rejects with a PaddockError otherwise, or with the signal's reason if it was aborted.
 */
export function transport(send: typeof fetch): (request: Request) => Promise<Response> {
  return async (request) => {
    const changes = isChange(request);
    try {
      const response = await send(request);
      if (response.status === 304 || (response.ok && mediaType(response) !== 'application/json')) {
        return bare(changes, response);
      }
      const text = await response.text();
      if (response.ok) {
        return whole(changes, response, text);
      }
      throw refusal(changes, response, text);
    } catch (error) {
      request.signal.throwIfAborted();
      throw error instanceof PaddockError ? error : lost(changes, error);
    }
  };
}

/** isChange returns whether the request may change something: then a lost answer leaves open what was done. */
function isChange(request: Request): boolean {
  return request.method !== 'GET' && !request.url.endsWith('/v1/tokens/verify');
}

/** bare returns an answer without JSON, if Paddock has such. */
function bare(changes: boolean, response: Response): Response {
  const ours = ['text/event-stream', 'application/yaml'];
  if ([204, 304].includes(response.status) || ours.includes(mediaType(response))) {
    return response;
  }
  throw foreign(changes, response);
}

/** whole returns the success anew, now that its JSON has come to an end. */
function whole(changes: boolean, response: Response, text: string): Response {
  try {
    JSON.parse(text);
  } catch (error) {
    throw foreign(changes, response, error);
  }
  const { status, statusText, headers } = response;
  return new Response(text, { status, statusText, headers });
}

/** refusal returns the error that an answer without success stands for. */
function refusal(changes: boolean, response: Response, text: string): PaddockError {
  if (mediaType(response) !== 'application/problem+json') {
    return foreign(changes, response);
  }
  let problem: Partial<Problem> | null;
  try {
    problem = JSON.parse(text) as Partial<Problem> | null;
  } catch (error) {
    return foreign(changes, response, error);
  }
  if (typeof problem?.code !== 'string' || (response.status >= 500 && !faults.includes(problem.code))) {
    return foreign(changes, response, new Error("the problem has no code of Paddock's"));
  }
  return new PaddockError(problem.code, problem.detail ?? problem.title ?? `HTTP ${response.status}`, facts(problem, response));
}

type Problem = components['schemas']['Problem'];

/** faults are the codes that Paddock has for a 5xx. */
const faults: readonly Problem['code'][] = ['unavailable', 'unknown_outcome', 'internal'];

function facts(p: Partial<Problem>, response: Response): Facts {
  return given({
    status: response.status,
    requestId: p.request_id,
    field: p.pointer?.replace(/^\//, ''),
    holder: p.holder,
    retryAfterMs: p.retry_after_ms ?? retryAfterMs(response),
    waitersAhead: p.waiters_ahead,
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
