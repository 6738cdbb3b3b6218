import type { Address, Addresses, Plan } from './addresses.js';
import { refusedByBrowser } from './cors.js';
import { hasCode, PaddockError, type Blocker, type DeadlockStep, type ErrorFields } from './error.js';
import { isPaddock, lostResponse, mediaType, notPaddock, retryAfterMs } from './failures.js';
import type { KeySource } from './key.js';
import { omitUndefined } from './omit.js';
import type { components } from './schema.js';
import { withTimeout } from './timeout.js';

/**
 * transport returns a fetch function that sends the key and resolves only with a successful response of Paddock whose JSON
 * was read completely. It rejects with a PaddockError otherwise, or with the signal's reason if the signal was aborted.
 */
export function transport(addresses: Addresses, key: KeySource): (request: Request) => Promise<Response> {
  return async (request) => {
    const call = await callOf(addresses.base, request);
    return withTimeout(call.timeoutMs, request.signal, async (signal) => {
      const send = (value: string | undefined) => addresses.call(call, (address, timeoutMs) =>
        withTimeout(timeoutMs, signal, (ending) => attempt(address, call, value, ending), call.streams));
      return sendWithKey(key, send);
    }, call.streams);
  };
}

/** sendWithKey sends the request; once more if the service refuses the key and there is another one meanwhile. */
async function sendWithKey(key: KeySource, send: (value: string | undefined) => Promise<Response>): Promise<Response> {
  const first = await key.read(false);
  try {
    return await send(first);
  } catch (error) {
    if (!key.changes || !(error instanceof PaddockError) || error.status !== 401 || hasCode(error, 'unavailable', 'unknown_outcome')) {
      throw error;
    }
    const second = await key.read(true);
    if (second === first) {
      throw error;
    }
    return send(second);
  }
}

/** A Call is a request that can be sent several times. */
interface Call extends Plan {
  readonly changes: boolean;
  /** Whether the response has no end. */
  readonly streams: boolean;
  /** Returns the request, to an address and with a key. */
  request(base: string, key: string | undefined, signal: AbortSignal): Request;
}

/** callOf returns the call of the request, whose URL begins with the base. */
async function callOf(base: string, request: Request & { timeoutMs?: number | undefined }): Promise<Call> {
  const { method, redirect, credentials, cache, url, timeoutMs = Infinity } = request;
  const path = url.slice(base.length);
  const body = method === 'GET' || method === 'HEAD' ? undefined : await request.text();
  return {
    timeoutMs,
    ...planOf(path, body),
    changes: isChange(method, path),
    streams: path.startsWith('/v1/events/stream'),
    request(to, key, signal) {
      const headers = new Headers(request.headers);
      if (key !== undefined) {
        headers.set('Authorization', `Bearer ${key}`);
      }
      return new Request(to + path, { method, headers, redirect, credentials, cache, signal, ...(body && { body }) });
    },
  };
}

/**
 * planOf returns what the request says about its wait, and whether a repetition is the same call: it has the ids for that,
 * and is not refused because the first one took effect.
 */
function planOf(path: string, body: string | undefined): Pick<Plan, 'waitMs' | 'repeatable'> {
  if (!body || !/^\/v1\/fenced\/|\/(acquire|batch|sessions|wait)$/.test(path)) {
    const waitMs = Number(/[?&]wait_ms=(\d+)/.exec(path)?.[1] ?? 0);
    return { waitMs, repeatable: !/^\/v1\/locks\/.*\/revoke$/.test(path) };
  }
  const call = JSON.parse(body) as { wait_ms?: number; items?: object[] };
  return { waitMs: call.wait_ms ?? 0, repeatable: isRepeatable(path, call, call.items ?? [call]) };
}

function isRepeatable(path: string, call: object, items: object[]): boolean {
  if (path.startsWith('/v1/fenced/')) {
    return 'operation_id' in call || !('if_version' in call);
  }
  if (path.endsWith('/sessions')) {
    return 'session_id' in call;
  }
  return path.endsWith('/wait') || items.every((item) => 'lease_id' in item);
}

/** attempt sends the request to one address. */
async function attempt(address: Address, call: Call, key: string | undefined, signal: AbortSignal): Promise<Response> {
  const { changes } = call;
  let response: Response | undefined;
  try {
    response = await address.send(call.request(address.base, key, signal));
    if (!isPaddock(response)) {
      throw notPaddock(changes, response);
    }
    address.answered = true;
    if (response.status === 304 || (response.ok && mediaType(response) !== 'application/json')) {
      return withoutJson(changes, response);
    }
    const text = await response.text();
    if (response.ok) {
      return withJson(changes, response, text);
    }
    throw problemError(changes, response, text);
  } catch (error) {
    if (response && !response.bodyUsed) {
      response.body?.cancel().catch(() => undefined); // unread, it would keep the connection, and a process of Node
    }
    signal.throwIfAborted();
    throw error instanceof PaddockError ? error : (await refusedByBrowser(address)) ?? lostResponse(changes, error);
  }
}

/** reading are the paths of calls that change nothing, although their method is POST. */
const reading: readonly string[] = ['/v1/tokens/verify', '/v1/events/wait'];

/** isChange reports whether the request can change something. If its response is lost, the outcome is unknown. */
function isChange(method: string, path: string): boolean {
  return method !== 'GET' && !reading.includes(path);
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

function blockerOf({ name, holder, retry_after_ms, suspect, ahead }: components['schemas']['BlockedLock']): Blocker {
  return { name, retryAfterMs: retry_after_ms, ...omitUndefined({ holder, suspect, waitersAhead: ahead }) };
}

function stepOf({ name, holder, waits_for, at, ahead }: components['schemas']['DeadlockStep']): DeadlockStep {
  return { name, holder, waitsFor: waits_for, ...omitUndefined({ at, ahead }) };
}

/** serverErrors are the codes that Paddock sends with a 5xx status. */
const serverErrors: readonly Problem['code'][] = ['unavailable', 'unknown_outcome', 'internal'];

function fieldsOf(p: Partial<Problem>, status: number, retryMs: number | undefined): ErrorFields {
  return omitUndefined({
    status,
    requestId: p.request_id,
    field: p.pointer?.replace(/^\//, ''),
    holder: p.holder,
    doneAt: p.done_at === undefined ? undefined : new Date(p.done_at),
    retryAfterMs: p.retry_after_ms ?? retryMs,
    suspect: p.suspect,
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
    revokedBy: p.revoked_by,
    frozenBy: p.frozen_by,
    frozenUntil: p.frozen_until === undefined ? undefined : new Date(p.frozen_until),
  });
}
