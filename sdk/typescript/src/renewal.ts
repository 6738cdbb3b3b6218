import type { CallOptions, Paddock } from './client.js';
import { Deadline, mark, type Mark } from './clock.js';
import type { Kind } from './kind.js';
import type { components } from './schema.js';
import type { LeaseAnswer } from './set.js';

type AcquireRequest = components['schemas']['AcquireRequest'];

/** A Renewable is a lease or a session at the service, with what is needed to renew and to end it. */
export interface Renewable {
  readonly kind: Kind;
  readonly ttlMs: number;
  readonly marginMs: number;
  /** Sends one renewal, which leaves unchanged what is not given. */
  renew(options: CallOptions, to?: Renewal): Promise<Expiring>;
  /** Sends one call that ends it: a release, which may close the lock, or the close of a session. */
  end(options: CallOptions, closing?: Closing): Promise<void>;
}

/** A Renewal may replace the TTL and the metadata. */
export type Renewal = Pick<components['schemas']['RenewRequest'], 'ttl_ms' | 'metadata'>;

/** A Closing says for how long a release closes the lock. */
export type Closing = Omit<components['schemas']['ReleaseRequest'], 'lease_id'>;

/** An Expiring ends after a time that counts from when the request was sent. */
export interface Expiring {
  readonly expires_in_ms: number;
}

/** A LeaseRef identifies a lease, of one lock or of several that are acquired together. */
export interface LeaseRef extends Renewable {
  readonly paddock: Paddock;
  readonly names: readonly string[];
  readonly leaseId: string;
  /** Sends one acquire. */
  acquire(request: AcquireRequest, options: CallOptions): Promise<LeaseAnswer>;
}

/** maxAttemptMs is the longest timeout of one renewal attempt. */
export const maxAttemptMs = 10_000;

/**
 * deadlineOf returns until when the holder may trust a lease or a session: the margin before its end, counted from when
 * the request was sent, so that a slow response shortens it.
 */
export function deadlineOf(sent: Mark, { expires_in_ms: left }: Expiring, marginMs: number): Deadline {
  return new Deadline(sent, left - marginMs);
}

/**
 * maxHoldDeadline returns until when the holder may trust the lease of a session if the session is renewed: the margin
 * before the end of its max_hold_ms, or an infinite time.
 */
export function maxHoldDeadline(sent: Mark, lease: LeaseAnswer, marginMs: number): Deadline {
  if (lease.max_hold_ms === undefined) {
    return new Deadline(sent, Infinity);
  }
  const end = Date.parse(lease.acquired_at) + lease.max_hold_ms; // expires_at may be that of the session
  return new Deadline(sent, lease.expires_in_ms + end - Date.parse(lease.expires_at) - marginMs);
}

/**
 * attemptTimeoutMs returns the timeout of one renewal attempt. It is shorter after a failure, so that several
 * attempts fit in before the deadline: the next one may use another connection.
 */
export function attemptTimeoutMs(ttlMs: number, failures: number): number {
  return Math.min(ttlMs / (failures === 0 ? 4 : 8), maxAttemptMs);
}

/** renewOnce renews the lease or session and returns the new deadline. It leaves unchanged what is not given. */
export async function renewOnce(ref: Renewable, options: CallOptions, to?: Renewal): Promise<Deadline> {
  const sent = mark();
  return deadlineOf(sent, await ref.renew(options, to), ref.marginMs);
}
