import createClient, { type Client } from 'openapi-fetch';

import { Addresses, type Address } from './addresses.js';
import { checked, checkOptions, expect, paddockOptions } from './arguments.js';
import { checkBaseUrl, checkName, checkSocket } from './check.js';
import { invalid, type PaddockError } from './error.js';
import { Hub } from './hub.js';
import { keySource } from './key.js';
import { bodyOf, expectNoContent, leaseBody, leaseSetBody, namedBody, sessionBody } from './response.js';
import type { components, operations, paths } from './schema.js';
import { socketFetch } from './socket.js';
import { transport } from './transport.js';
import type { Waits } from './waits.js';

type Schemas = components['schemas'];

/** PaddockOptions configure the connection to the service. */
export interface PaddockOptions {
  /**
   * The base URL, without user name and password. In a browser it may be relative; '' is the page's own origin. In Node, it
   * is `unix:/run/paddock.sock` for a service that listens on a socket on the same machine; then there is no `fetch`.
   *
   * For several replicas of one service, give all of their URLs with commas between them, as in PADDOCK_URL: a call that
   * fails at one of them goes to the next one at once, and an earlier one is used again when it is ready.
   */
  baseUrl: string;
  /**
   * The API key, which starts with `pk_`, if the service requires one. It is sent as `Authorization: Bearer` and never
   * appears in an error. Every script in a page can read it there, so use keys in programs, not in pages.
   *
   * For a key that is replaced while the program runs, pass a function. It is called for each request, and again if the
   * service refuses the key: with another key, that request is sent once more. After an error of the function, the key
   * before is sent.
   */
  key?: string | (() => string | Promise<string>) | undefined;
  /**
   * Sends the requests. The default is the platform's fetch. In Node, pass one with a `dispatcher` to trust other
   * authorities or to present a client certificate; where these are replaced while the program runs, it chooses the
   * dispatcher anew for each request.
   */
  fetch?: typeof fetch | undefined;
  /** Headers to send with every request. */
  headers?: Record<string, string> | undefined;
}

/** CallOptions apply to a single call. */
export interface CallOptions {
  /** Aborts the call. */
  signal?: AbortSignal | null;
  /**
   * The longest time that the call may take; then it rejects with `unknown_outcome`. By default there is no limit. With
   * several base URLs, one that does not respond within its share of this time is left for the next one.
   */
  timeoutMs?: number;
}

/**
 * Paddock has one method for each call of the service, with the members of the HTTP API. Each call is sent once to
 * each base URL at most; calls may run concurrently. They reject with a PaddockError, or with the signal's reason if the signal aborted
 * them.
 */
export interface Paddock {
  /**
   * Acquires the lock. Rejects with `lock_held` if it is not granted within `wait_ms`, with `lock_frozen` if an operator has
   * frozen it, and with `already_done` if it is closed because its work is done: at once, if the request says `once`. Rejects
   * with `session_lost` if the session of its `session_id` has ended. With a `lease_id`, a call that is aborted keeps its place until `wait_ms` is over: release
   * it if you do not call again.
   */
  acquire(name: string, request: Schemas['AcquireRequest'], options?: CallOptions): Promise<Schemas['Lease']>;
  /** Renews a lease. Rejects with `lease_lost` if it has ended. */
  renew(name: string, request: Schemas['RenewRequest'], options?: CallOptions): Promise<Schemas['Lease']>;
  /**
   * Releases a lease or gives up a place in the queue. Rejects with `lease_lost` if the lease ended in another way. With
   * `once_per` or `closed_ms` it also closes the lock, because its work is done for so long.
   */
  release(name: string, request: Schemas['ReleaseRequest'], options?: CallOptions): Promise<void>;
  /**
   * Acquires several locks, all or none. Rejects with `lock_held` if they are not granted within `wait_ms`; its
   * `blockers` are the locks in the way. `renew` and `release` of one of the locks reject with `lease_in_set`.
   */
  acquireSet(request: Schemas['AcquireSetRequest'], options?: CallOptions): Promise<Schemas['LeaseSet']>;
  /** Renews the leases of several locks; needs all of their names. Rejects with `lease_lost` if they have ended. */
  renewSet(request: Schemas['RenewSetRequest'], options?: CallOptions): Promise<Schemas['LeaseSet']>;
  /**
   * Releases the leases of several locks, or gives up their places; needs all of their names. Rejects with `lease_lost` if
   * the leases ended in another way.
   */
  releaseSet(request: Schemas['ReleaseSetRequest'], options?: CallOptions): Promise<void>;
  /**
   * Revokes the leases with a token. Rejects with `token_mismatch` if there are none. `skip_grace` frees the lock
   * immediately.
   */
  revoke(name: string, request: Schemas['RevokeRequest'], options?: CallOptions): Promise<Schemas['Lock']>;
  /**
   * Opens a session, or resolves with the one that an earlier call with this `session_id` and `holder` has opened. Rejects
   * with `session_id_in_use` if another holder has it, and with `session_lost` if it has ended.
   */
  openSession(request: Schemas['OpenSessionRequest'], options?: CallOptions): Promise<Schemas['Session']>;
  /** Renews a session and thus all of its leases. Rejects with `session_lost` if it has ended. */
  renewSession(request: Schemas['RenewSessionRequest'], options?: CallOptions): Promise<Schemas['Session']>;
  /** Releases all leases of a session and ends it. Rejects with `session_lost` if it ended in another way. */
  closeSession(request: Schemas['CloseSessionRequest'], options?: CallOptions): Promise<void>;
  /** Lists the open sessions in the order of their public names. */
  sessions(query?: Query<'listSessions'>, options?: CallOptions): Promise<Schemas['SessionPage']>;
  /** Reads a session by its public name, with its leases and places. Rejects with `not_found` if there is none. */
  session(ref: string, options?: CallOptions): Promise<Schemas['SessionInfo']>;
  /**
   * Ends the session with this public name and its leases. Rejects with `session_lost` if it had ended in another way.
   * `skip_grace` frees the locks immediately.
   */
  revokeSession(ref: string, request: Schemas['RevokeSessionRequest'], options?: CallOptions): Promise<Schemas['SessionInfo']>;
  /**
   * Declares a tree: a lock in it covers all locks below it. May be repeated. Rejects with `tree_busy` if one of its locks is
   * held or waited for, and with `tree_overlaps` if the root is inside another tree or above its root.
   */
  declareTree(root: string, options?: CallOptions): Promise<Schemas['Tree']>;
  /** Makes the locks of a tree independent of each other. May be repeated. Rejects with `tree_busy` like `declareTree`. */
  removeTree(root: string, options?: CallOptions): Promise<void>;
  /** Lists all declared trees in the order of their roots. */
  trees(options?: CallOptions): Promise<Schemas['TreeList']>;
  /**
   * Freezes a lock, or all locks whose names begin with a scope such as `billing:`. When it resolves, no replica grants them,
   * and acquires are rejected with `lock_frozen`; holders may renew and release. Call `frozen` until its `leases` is 0.
   */
  freeze(scope: string, request: Schemas['FreezeRequest'], options?: CallOptions): Promise<Schemas['FreezeStatus']>;
  /** Reads the freeze of a scope, and how many leases are left. Rejects with `not_found` if the scope is not frozen. */
  frozen(scope: string, options?: CallOptions): Promise<Schemas['FreezeStatus']>;
  /** Ends the freeze of a scope, if there is one: waiters are granted the locks. */
  thaw(scope: string, options?: CallOptions): Promise<void>;
  /** Lists the freezes in the order of their scopes. */
  freezes(options?: CallOptions): Promise<Schemas['FreezeList']>;
  /**
   * Bounds what may be asked of the locks of a scope, instead of the rule of this scope before. When it resolves, no replica
   * grants anything outside of it: such a request is rejected with `invalid_request`. The rule of the longest scope applies.
   */
  setRule(scope: string, rule: Schemas['RuleRequest'], options?: CallOptions): Promise<Schemas['Rule']>;
  /** Removes the rule of a scope, if there is one. */
  removeRule(scope: string, options?: CallOptions): Promise<void>;
  /** Lists the rules in the order of their scopes. */
  rules(options?: CallOptions): Promise<Schemas['RuleList']>;
  /** Lists the databases of a service that has several, and which groups of locks were moved to each. Empty if it has one. */
  cells(options?: CallOptions): Promise<Schemas['CellList']>;
  /** Reads how the service itself is: its replicas, its databases and its settings. For operators. */
  service(options?: CallOptions): Promise<Schemas['ServiceInfo']>;
  /** Reads a lock. A lock that was never used is free. */
  lock(name: string, options?: CallOptions): Promise<Schemas['Lock']>;
  /** Lists the waiters of a lock and what blocks each of them. */
  queue(name: string, options?: CallOptions): Promise<Schemas['Queue']>;
  /** Lists locks in the order of their names. */
  locks(query?: Query<'listLocks'>, options?: CallOptions): Promise<Schemas['LockPage']>;
  /** Lists who held a lock: at an instant, or last. The newest grant is the first one. */
  holds(name: string, query?: Query<'listHolds'>, options?: CallOptions): Promise<Schemas['HoldList']>;
  /** Lists events, oldest first unless `order` is `desc`. */
  events(query?: Query<'listEvents'>, options?: CallOptions): Promise<Schemas['EventPage']>;
  /** Reports the status of a token as of `checked_at`. */
  verifyToken(request: Schemas['VerifyRequest'], options?: CallOptions): Promise<Schemas['TokenVerification']>;
  /**
   * Records in the lock's history that a write with a stale token was rejected. Rejects with `token_mismatch` if the token
   * is current, and with `unknown_token` if it was never granted.
   */
  reportStaleToken(request: Schemas['ReportRequest'], options?: CallOptions): Promise<Schemas['ReportResult']>;
  /** Writes a value under a token. Rejects with `stale_token`, `unknown_token` or `version_mismatch`. */
  writeFenced(key: string, request: Schemas['FencedWrite'], options?: CallOptions): Promise<Schemas['FencedValue']>;
  /** Reads a fenced value. Rejects with `not_found` if there is none. */
  readFenced(key: string, options?: CallOptions): Promise<Schemas['FencedValue']>;
  /**
   * Sends up to 1000 acquires that do not wait, renewals and releases together. The results are in the order of the items,
   * each with its own `status`: check each of them, since a batch is not atomic. Give each acquire a `lease_id`.
   */
  batch(request: Schemas['BatchRequest'], options?: CallOptions): Promise<Schemas['BatchResults']>;
  /** All calls of openapi.yaml as an openapi-fetch client, with the same errors. */
  readonly api: Client<paths>;
  /** @internal What the guards of this client have in common. Absent in an implementation of your own. */
  readonly common?: Common;
}

/** @internal */
export interface Common {
  readonly hub: Hub;
  readonly waits: Waits;
}

type Query<Operation extends 'listLocks' | 'listEvents' | 'listHolds' | 'listSessions'> = NonNullable<operations[Operation]['parameters']['query']>;

/**
 * createPaddock returns a client of the service at the base URL. It sends no request. It throws `invalid_request` for
 * invalid options.
 */
export function createPaddock(options: PaddockOptions): Paddock {
  checkOptions('createPaddock', options, paddockOptions, "an object such as { baseUrl: 'http://127.0.0.1:8080' }");
  expect('baseUrl', options.baseUrl, paddockOptions.baseUrl);
  const { headers = {} } = options;
  const addresses = new Addresses(addressesOf(options), headers);
  const api = createClient<paths>({
    baseUrl: addresses.base,
    fetch: transport(addresses, keySource(options)),
    redirect: 'manual',
    querySerializer: { array: { style: 'form', explode: false } },
    bodySerializer: jsonOf,
    headers,
  });
  const { waits } = addresses;
  const common = { hub: new Hub(api, waits), waits };
  const calls = {
    ...leaseCalls(api), ...setCalls(api), ...sessionCalls(api), ...treeCalls(api), ...policyCalls(api), ...readCalls(api), ...fencingCalls(api),
  };
  return { api, common, ...checked(calls) };
}

/** jsonOf returns the body of a request. It throws a TypeError if JSON cannot represent it. */
function jsonOf(request: unknown): string {
  try {
    return JSON.stringify(request);
  } catch (cause) {
    throw new TypeError('request has what JSON cannot represent, such as a BigInt or itself; pass plain data.', { cause });
  }
}

/** addressesOf returns the addresses in the options, which are separated by commas. An error says which one is wrong. */
function addressesOf({ baseUrl, fetch: own }: PaddockOptions): Address[] {
  const seen = new Set<string>();
  return baseUrl.split(',').map((text, i, { length }) => {
    const wrong = (problem: string) => invalid('baseUrl', length === 1 ? problem : `(address ${i + 1} of ${length}) ${problem}`);
    const address = addressOf(text.trim(), own, wrong);
    const place = address.url.startsWith('unix:') ? address.url : address.base;
    if (seen.has(place)) {
      throw wrong("names an address twice; give each replica's address once");
    }
    seen.add(place);
    return address;
  });
}

/** addressOf returns the address with the URL. */
function addressOf(url: string, own: PaddockOptions['fetch'], wrong: (problem: string) => PaddockError): Address {
  const socket = checkSocket(url, wrong);
  if (socket === undefined) {
    return { url, base: checkBaseUrl(url, wrong), send: own ?? ((request) => fetch(request)), answered: false };
  }
  if (own) {
    throw invalid('fetch', 'conflicts with a socket as baseUrl; pass only one of them');
  }
  return { url, base: 'http://localhost', send: socketFetch(socket), answered: false };
}

const lockParams = (name: string) => ({ path: { name: checkName('name', name) } });
const sessionParams = (session: string) => ({ path: { session: checkName('session', session) } });
const rootParams = (root: string) => ({ path: { root: checkName('root', root) } });
const scopeParams = (scope: string) => ({ path: { scope: checkName('scope', scope) } });
const keyParams = (key: string) => ({ path: { key: checkName('key', key) } });

function leaseCalls(api: Client<paths>): Pick<Paddock, 'acquire' | 'renew' | 'release' | 'revoke' | 'batch'> {
  return {
    acquire: async (name, body, o) =>
      leaseBody(name, body.lease_id, await api.POST('/v1/locks/{name}/acquire', { ...o, params: lockParams(name), body })),
    renew: async (name, body, o) =>
      leaseBody(name, body.lease_id, await api.POST('/v1/locks/{name}/renew', { ...o, params: lockParams(name), body })),
    release: async (name, body, o) =>
      expectNoContent(await api.POST('/v1/locks/{name}/release', { ...o, params: lockParams(name), body })),
    revoke: async (name, body, o) =>
      namedBody('change', name, await api.POST('/v1/locks/{name}/revoke', { ...o, params: lockParams(name), body })),
    batch: async (body, o) =>
      bodyOf('change', await api.POST('/v1/batch', { ...o, body }), ({ results }) => results?.length === body.items.length),
  };
}

function setCalls(api: Client<paths>): Pick<Paddock, 'acquireSet' | 'renewSet' | 'releaseSet'> {
  return {
    acquireSet: async (body, o) =>
      leaseSetBody(body.locks.map((lock) => lock.name), body.lease_id, await api.POST('/v1/acquire', { ...o, body })),
    renewSet: async (body, o) =>
      leaseSetBody(body.names, body.lease_id, await api.POST('/v1/renew', { ...o, body })),
    releaseSet: async (body, o) =>
      expectNoContent(await api.POST('/v1/release', { ...o, body })),
  };
}

type SessionCalls = 'openSession' | 'renewSession' | 'closeSession' | 'sessions' | 'session' | 'revokeSession';

function sessionCalls(api: Client<paths>): Pick<Paddock, SessionCalls> {
  return {
    openSession: async (body, o) =>
      sessionBody(body.session_id, await api.POST('/v1/sessions', { ...o, body })),
    renewSession: async (body, o) =>
      sessionBody(body.session_id, await api.POST('/v1/sessions/renew', { ...o, body })),
    closeSession: async (body, o) =>
      expectNoContent(await api.POST('/v1/sessions/close', { ...o, body })),
    sessions: async (query = {}, o = {}) =>
      bodyOf('read', await api.GET('/v1/sessions', { ...o, params: { query } }), (page) => Array.isArray(page.sessions)),
    session: async (ref, o) =>
      bodyOf('read', await api.GET('/v1/sessions/{session}', { ...o, params: sessionParams(ref) }), (s) => s.session === ref),
    revokeSession: async (ref, body, o) =>
      bodyOf('change', await api.POST('/v1/sessions/{session}/revoke', { ...o, params: sessionParams(ref), body }), (s) => s.session === ref),
  };
}

function treeCalls(api: Client<paths>): Pick<Paddock, 'declareTree' | 'removeTree' | 'trees'> {
  return {
    declareTree: async (root, o) =>
      bodyOf('change', await api.PUT('/v1/trees/{root}', { ...o, params: rootParams(root) }), (tree) => tree.root === root),
    removeTree: async (root, o) =>
      expectNoContent(await api.DELETE('/v1/trees/{root}', { ...o, params: rootParams(root) })),
    trees: async (o) =>
      bodyOf('read', await api.GET('/v1/trees', { ...o }), (list) => Array.isArray(list.trees)),
  };
}

type PolicyCalls = 'freeze' | 'frozen' | 'thaw' | 'freezes' | 'setRule' | 'removeRule' | 'rules' | 'cells' | 'service';

function policyCalls(api: Client<paths>): Pick<Paddock, PolicyCalls> {
  return {
    freeze: async (scope, body, o) =>
      bodyOf('change', await api.PUT('/v1/freezes/{scope}', { ...o, params: scopeParams(scope), body }), isFreezeOf(scope)),
    frozen: async (scope, o) =>
      bodyOf('read', await api.GET('/v1/freezes/{scope}', { ...o, params: scopeParams(scope) }), isFreezeOf(scope)),
    thaw: async (scope, o) =>
      expectNoContent(await api.DELETE('/v1/freezes/{scope}', { ...o, params: scopeParams(scope) })),
    freezes: async (o) =>
      bodyOf('read', await api.GET('/v1/freezes', { ...o }), (list) => Array.isArray(list.freezes)),
    setRule: async (scope, body, o) =>
      bodyOf('change', await api.PUT('/v1/rules/{scope}', { ...o, params: scopeParams(scope), body }), (rule) => rule.scope === scope),
    removeRule: async (scope, o) =>
      expectNoContent(await api.DELETE('/v1/rules/{scope}', { ...o, params: scopeParams(scope) })),
    rules: async (o) =>
      bodyOf('read', await api.GET('/v1/rules', { ...o }), (list) => Array.isArray(list.rules)),
    cells: async (o) =>
      bodyOf('read', await api.GET('/v1/cells', { ...o }), (list) => Array.isArray(list.cells)),
    service: async (o) =>
      bodyOf('read', await api.GET('/v1/service', { ...o }), (service) => Array.isArray(service.databases)),
  };
}

/** isFreezeOf reports whether the answer is the freeze of the scope, with the number of leases that a drain waits for. */
function isFreezeOf(scope: string): (freeze: Schemas['FreezeStatus']) => boolean {
  return (freeze) => freeze.scope === scope && Number.isSafeInteger(freeze.leases);
}

function readCalls(api: Client<paths>): Pick<Paddock, 'lock' | 'queue' | 'holds' | 'locks' | 'events'> {
  return {
    lock: async (name, o) =>
      namedBody('read', name, await api.GET('/v1/locks/{name}', { ...o, params: lockParams(name) })),
    queue: async (name, o) =>
      namedBody('read', name, await api.GET('/v1/locks/{name}/queue', { ...o, params: lockParams(name) })),
    holds: async (name, query = {}, o = {}) =>
      namedBody('read', name, await api.GET('/v1/locks/{name}/holds', { ...o, params: { ...lockParams(name), query } })),
    locks: async (query = {}, o = {}) =>
      bodyOf('read', await api.GET('/v1/locks', { ...o, params: { query } }), (page) => Array.isArray(page.locks)),
    events: async (query = {}, o = {}) =>
      bodyOf('read', await api.GET('/v1/events', { ...o, params: { query } }), (page) => Array.isArray(page.events)),
  };
}

function fencingCalls(api: Client<paths>): Pick<Paddock, 'verifyToken' | 'reportStaleToken' | 'writeFenced' | 'readFenced'> {
  return {
    verifyToken: async (body, o) =>
      namedBody('read', body.name, await api.POST('/v1/tokens/verify', { ...o, body })),
    reportStaleToken: async (body, o) =>
      bodyOf('change', await api.POST('/v1/tokens/report', { ...o, body }), (result) => typeof result.recorded === 'boolean'),
    writeFenced: async (key, body, o) =>
      bodyOf('change', await api.PUT('/v1/fenced/{key}', { ...o, params: keyParams(key), body }), (f) => f.key === key),
    readFenced: async (key, o) =>
      bodyOf('read', await api.GET('/v1/fenced/{key}', { ...o, params: keyParams(key) }), (f) => f.key === key),
  };
}
