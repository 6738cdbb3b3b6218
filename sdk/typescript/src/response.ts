import { notPaddock } from './failures.js';
import type { components } from './schema.js';

/** ApiResponse is a response as openapi-fetch returns it; data is undefined if there was no body. */
export interface ApiResponse<T> {
  readonly data?: T;
  readonly response: Response;
}

/** CallKind says whether a call can change something. */
export type CallKind = 'read' | 'change';

/** bodyOf returns the body if it matches the request. Otherwise another server answered, and bodyOf throws. */
export function bodyOf<T>(kind: CallKind, { data, response }: ApiResponse<T>, matches: (data: T) => boolean): T {
  if (typeof data !== 'object' || data === null || !matches(data)) {
    throw notPaddock(kind === 'change', response);
  }
  return data;
}

/** namedBody returns the body if it has the given name. */
export function namedBody<T extends { name: string }>(kind: CallKind, name: string, response: ApiResponse<T>): T {
  return bodyOf(kind, response, (data) => data.name === name);
}

type Lease = components['schemas']['Lease'];
type LeaseSet = components['schemas']['LeaseSet'];

/** leaseBody returns the lease if it is the requested one; no work may start under any other. */
export function leaseBody(name: string, leaseId: string | undefined, response: ApiResponse<Lease>): Lease {
  return bodyOf('change', response, (lease) => isOfLock(lease, name) && isLease(lease, leaseId));
}

/** leaseSetBody returns the leases if they are those of the requested locks. */
export function leaseSetBody(
  names: readonly string[], leaseId: string | undefined, response: ApiResponse<LeaseSet>,
): LeaseSet {
  const sorted = [...names].sort();
  return bodyOf('change', response, ({ locks, ...lease }) =>
    locks?.length === sorted.length && sorted.every((name, i) => isOfLock(locks[i]!, name)) && isLease(lease, leaseId));
}

function isOfLock(lock: Pick<Lease, 'name' | 'fencing_token'>, name: string): boolean {
  return lock.name === name && Number.isSafeInteger(lock.fencing_token) && lock.fencing_token > 0;
}

function isLease(lease: Pick<Lease, 'lease_id' | 'ttl_ms' | 'expires_in_ms'>, leaseId: string | undefined): boolean {
  return (leaseId ?? lease.lease_id)?.toLowerCase() === lease.lease_id?.toLowerCase() &&
    Number.isFinite(lease.expires_in_ms) && Number.isFinite(lease.ttl_ms);
}

type Session = components['schemas']['Session'];

/** sessionBody returns the session if it is the requested one. */
export function sessionBody(sessionId: string | undefined, response: ApiResponse<Session>): Session {
  return bodyOf('change', response, (session) =>
    (sessionId ?? session.session_id)?.toLowerCase() === session.session_id?.toLowerCase() &&
    typeof session.session === 'string' && Number.isSafeInteger(session.revoked_leases) &&
    Number.isFinite(session.expires_in_ms) && Number.isFinite(session.ttl_ms));
}

/** expectNoContent throws unless the status is 204. */
export function expectNoContent({ response }: ApiResponse<unknown>): void {
  if (response.status !== 204) {
    throw notPaddock(true, response);
  }
}
