import createClient, { type Client } from 'openapi-fetch';

import { bodyOf, leaseOf, named, nothing } from './answer.js';
import { checkBaseUrl, checkKey, checkName } from './check.js';
import { invalid } from './error.js';
import type { components, operations, paths } from './schema.js';
import { transport } from './transport.js';

type Schemas = components['schemas'];

/** PaddockOptions say where the service is. */
export interface PaddockOptions {
  /** The base URL, without user name and password. In a browser it may be relative; '' is the page's own origin. */
  baseUrl: string;
  /**
   * The API key, which begins with `pk_`, where the service asks for one. It is sent as `Authorization: Bearer`, and is
   * in no error. In a page whoever can run a script there can read it: give it to programs.
   */
  key?: string | undefined;
  /** What sends requests; the platform's own fetch if not given. */
  fetch?: typeof fetch | undefined;
  /** Headers of all requests. */
  headers?: Record<string, string> | undefined;
}

/** CallOptions are those of a single call. */
export interface CallOptions {
  /** Ends the call. There is no other bound to how long one may take. */
  signal?: AbortSignal | null;
}

/**
 * A Paddock is the service's calls, one to one: they speak the wire's language, are sent once, and are safe
 * to make side by side. They reject with a PaddockError, or with the signal's reason if that ended them.
 */
export interface Paddock {
  /** Takes the lock, or is refused with `lock_held` once `wait_ms` is over. */
  acquire(name: string, request: Schemas['AcquireRequest'], options?: CallOptions): Promise<Schemas['Lease']>;
  /** Moves the end of a lease, or is refused with `lease_lost`. */
  renew(name: string, request: Schemas['RenewRequest'], options?: CallOptions): Promise<Schemas['Lease']>;
  /** Gives a lease or a place in the queue up, or is refused with `lease_lost`. */
  release(name: string, request: Schemas['ReleaseRequest'], options?: CallOptions): Promise<void>;
  /** Takes leases away, or is refused with `token_mismatch`. */
  revoke(name: string, request: Schemas['RevokeRequest'], options?: CallOptions): Promise<Schemas['Lock']>;
  /** Looks at a lock. One that was never used is free. */
  lock(name: string, options?: CallOptions): Promise<Schemas['Lock']>;
  /** Says who waits, and for what. */
  queue(name: string, options?: CallOptions): Promise<Schemas['Queue']>;
  /** Lists locks in the order of their names. */
  locks(query?: Query<'listLocks'>, options?: CallOptions): Promise<Schemas['LockPage']>;
  /** Lists what happened, oldest first. */
  events(query?: Query<'listEvents'>, options?: CallOptions): Promise<Schemas['EventPage']>;
  /** Says how a token stands as of an instant. */
  verifyToken(request: Schemas['VerifyRequest'], options?: CallOptions): Promise<Schemas['Verdict']>;
  /** Writes under a token, or is refused with `stale_token`, `unknown_token` or `version_mismatch`. */
  writeFenced(key: string, request: Schemas['FencedWrite'], options?: CallOptions): Promise<Schemas['Fenced']>;
  /** Reads what was written, or is refused with `not_found`. */
  readFenced(key: string, options?: CallOptions): Promise<Schemas['Fenced']>;
  /** Every call of openapi.yaml as openapi-fetch has it, with the same errors. */
  readonly api: Client<paths>;
}

type Query<Operation extends 'listLocks' | 'listEvents'> = NonNullable<operations[Operation]['parameters']['query']>;

/** createPaddock returns the calls of the service at the base URL. It sends nothing. It throws `invalid_request` for options that cannot be. */
export function createPaddock(options: PaddockOptions): Paddock {
  const headers = { ...options.headers, ...authorization(options) };
  const api = createClient<paths>({
    baseUrl: checkBaseUrl(options.baseUrl),
    fetch: transport(options.fetch ?? ((request) => fetch(request))),
    redirect: 'manual',
    headers,
  });
  return { api, ...locksOf(api), ...viewsOf(api), ...fenceOf(api) };
}

/** authorization returns the header that the key is sent in, if there is one. */
function authorization({ key, headers = {} }: PaddockOptions): Record<string, string> {
  if (key === undefined) {
    return {};
  }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
    throw invalid('key', 'is there beside a header Authorization; give one of the two');
  }
  return { Authorization: `Bearer ${checkKey(key)}` };
}

const to = (name: string) => ({ path: { name: checkName('name', name) } });
const at = (key: string) => ({ path: { key: checkName('key', key) } });

function locksOf(api: Client<paths>): Pick<Paddock, 'acquire' | 'renew' | 'release' | 'revoke'> {
  return {
    acquire: async (name, body, o) =>
      leaseOf(name, body.lease_id, await api.POST('/v1/locks/{name}/acquire', { ...o, params: to(name), body })),
    renew: async (name, body, o) =>
      leaseOf(name, body.lease_id, await api.POST('/v1/locks/{name}/renew', { ...o, params: to(name), body })),
    release: async (name, body, o) =>
      nothing(await api.POST('/v1/locks/{name}/release', { ...o, params: to(name), body })),
    revoke: async (name, body, o) =>
      named('change', name, await api.POST('/v1/locks/{name}/revoke', { ...o, params: to(name), body })),
  };
}

function viewsOf(api: Client<paths>): Pick<Paddock, 'lock' | 'queue' | 'locks' | 'events'> {
  return {
    lock: async (name, o) =>
      named('read', name, await api.GET('/v1/locks/{name}', { ...o, params: to(name) })),
    queue: async (name, o) =>
      named('read', name, await api.GET('/v1/locks/{name}/queue', { ...o, params: to(name) })),
    locks: async (query = {}, o = {}) =>
      bodyOf('read', await api.GET('/v1/locks', { ...o, params: { query } }), (page) => Array.isArray(page.locks)),
    events: async (query = {}, o = {}) =>
      bodyOf('read', await api.GET('/v1/events', { ...o, params: { query } }), (page) => Array.isArray(page.events)),
  };
}

function fenceOf(api: Client<paths>): Pick<Paddock, 'verifyToken' | 'writeFenced' | 'readFenced'> {
  return {
    verifyToken: async (body, o) =>
      named('read', body.name, await api.POST('/v1/tokens/verify', { ...o, body })),
    writeFenced: async (key, body, o) =>
      bodyOf('change', await api.PUT('/v1/fenced/{key}', { ...o, params: at(key), body }), (f) => f.key === key),
    readFenced: async (key, o) =>
      bodyOf('read', await api.GET('/v1/fenced/{key}', { ...o, params: at(key) }), (f) => f.key === key),
  };
}
