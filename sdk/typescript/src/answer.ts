import { foreign } from './lost.js';
import type { components } from './schema.js';

/** An Answer is what openapi-fetch makes of a response; data is missing where there was no body. */
export interface Answer<T> {
  readonly data?: T;
  readonly response: Response;
}

/** Whether the call that was answered may change something. */
export type Kind = 'read' | 'change';

/** bodyOf returns the answer's body if it is what was asked for; else it was not Paddock that answered. */
export function bodyOf<T>(kind: Kind, { data, response }: Answer<T>, isIt: (data: T) => boolean): T {
  if (typeof data !== 'object' || data === null || !isIt(data)) {
    throw foreign(kind === 'change', response);
  }
  return data;
}

/** named returns the answer's body if it is of the name. */
export function named<T extends { name: string }>(kind: Kind, name: string, answer: Answer<T>): T {
  return bodyOf(kind, answer, (data) => data.name === name);
}

type Lease = components['schemas']['Lease'];

/** leaseOf returns the lease if it is the one asked for. A lease that is not may not be worked under. */
export function leaseOf(name: string, leaseId: string | undefined, answer: Answer<Lease>): Lease {
  return bodyOf('change', answer, (lease) =>
    lease.name === name &&
    (leaseId ?? lease.lease_id)?.toLowerCase() === lease.lease_id?.toLowerCase() &&
    Number.isSafeInteger(lease.fencing_token) && lease.fencing_token > 0 &&
    Number.isFinite(lease.expires_in_ms) && Number.isFinite(lease.ttl_ms));
}

/** nothing checks that the answer is 204, which has no body. */
export function nothing({ response }: Answer<unknown>): void {
  if (response.status !== 204) {
    throw foreign(true, response);
  }
}
