import { attempt } from './attempt.js';
import type { Paddock } from './client.js';
import { Deadline, mark, type Mark } from './clock.js';
import type { components } from './schema.js';

type Lease = components['schemas']['Lease'];

/** A Claim is what it takes to renew a lease. */
export interface Claim {
  readonly paddock: Paddock;
  readonly name: string;
  readonly leaseId: string;
  readonly ttlMs: number;
  readonly marginMs: number;
}

/** longestAttemptMs is how long at most one try of a renewal may take. */
export const longestAttemptMs = 10_000;

/**
 * deadlineOf returns until when the holder may trust a lease that was asked for at the mark: a margin before the
 * end that the answer gave, counted from the asking, so that a slow answer shortens it.
 */
export function deadlineOf(asked: Mark, lease: Lease, marginMs: number): Deadline {
  return new Deadline(asked, lease.expires_in_ms - marginMs);
}

/**
 * attemptMs returns for how long one try of a renewal is waited for. It is less after one that failed, so that several fit in before the
 * deadline: what swallowed one may be a connection that the next does not use.
 */
export function attemptMs(ttlMs: number, failures: number): number {
  return Math.min(ttlMs / (failures === 0 ? 4 : 8), longestAttemptMs);
}

/** renewOnce renews the lease, or rejects after the milliseconds given, and returns the new deadline. */
export async function renewOnce(claim: Claim, ms: number, signal: AbortSignal | undefined): Promise<Deadline> {
  const asked = mark();
  const lease = await attempt(ms, signal, (inTime) =>
    claim.paddock.renew(claim.name, { lease_id: claim.leaseId }, { signal: inTime }));
  return deadlineOf(asked, lease, claim.marginMs);
}
