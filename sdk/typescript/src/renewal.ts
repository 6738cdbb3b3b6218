import type { Paddock } from './client.js';
import { Deadline, mark, type Mark } from './clock.js';
import type { components } from './schema.js';
import { withTimeout } from './timeout.js';

type Lease = components['schemas']['Lease'];

/** A LeaseRef identifies a lease, with what is needed to renew it. */
export interface LeaseRef {
  readonly paddock: Paddock;
  readonly name: string;
  readonly leaseId: string;
  readonly ttlMs: number;
  readonly marginMs: number;
}

/** maxAttemptMs is the longest timeout of one renewal attempt. */
export const maxAttemptMs = 10_000;

/**
 * leaseDeadline returns until when the holder may trust a lease: the margin before its end, counted from when the
 * request was sent, so that a slow response shortens it.
 */
export function leaseDeadline(sent: Mark, lease: Lease, marginMs: number): Deadline {
  return new Deadline(sent, lease.expires_in_ms - marginMs);
}

/**
 * attemptTimeoutMs returns the timeout of one renewal attempt. It is shorter after a failure, so that several
 * attempts fit in before the deadline: the next one may use another connection.
 */
export function attemptTimeoutMs(ttlMs: number, failures: number): number {
  return Math.min(ttlMs / (failures === 0 ? 4 : 8), maxAttemptMs);
}

/** renewOnce renews the lease with a timeout in milliseconds and returns the new deadline. */
export async function renewOnce(ref: LeaseRef, timeoutMs: number, signal: AbortSignal | undefined): Promise<Deadline> {
  const sent = mark();
  const lease = await withTimeout(timeoutMs, signal, (attemptSignal) =>
    ref.paddock.renew(ref.name, { lease_id: ref.leaseId }, { signal: attemptSignal }));
  return leaseDeadline(sent, lease, ref.marginMs);
}
