import { invalid, type PaddockError } from './error.js';
import { given } from './given.js';
import { ourselves } from './platform.js';
import type { components } from './schema.js';

type AcquireRequest = components['schemas']['AcquireRequest'];

/** usualTtlMs is the TTL of a lease if none is asked for. */
export const usualTtlMs = 30_000;

/** usualRetryMs is for how long an acquire is sent again if nothing is said. */
export const usualRetryMs = 10_000;

/** longestMarginMs is the greatest margin that is taken unasked. */
export const longestMarginMs = 5_000;

/**
 * Options say what lease is wanted, times in milliseconds. Without any it is tried, not waited, for an exclusive
 * lease with the usual TTL.
 */
export interface Options {
  /** Says to people who has the lock; host name and process id if not given. */
  holder?: string | undefined;
  /** `exclusive` if not given; `shared` for readers; `permit` for a semaphore of `capacity`. */
  mode?: components['schemas']['Mode'] | undefined;
  /** How many permits there are; of the mode `permit` only. */
  capacity?: number | undefined;
  /** How long the lease lives without a renewal; 30000 if not given. The service may have narrower bounds. */
  ttlMs?: number | undefined;
  /** After the lease's end: for how long nobody else may have the lock yet. */
  graceMs?: number | undefined;
  /** No renewal goes beyond this since the grant. */
  maxHoldMs?: number | undefined;
  /** A JSON object for all to see. */
  metadata?: Record<string, unknown> | undefined;

  /** For how long to wait for the lock: 0, or not given, to try only; Infinity for as long as the signal allows. */
  waitMs?: number | undefined;
  /**
   * For how long the acquire is sent again while the service cannot be reached or says to come later, unless `waitMs`
   * is longer; 10000 if not given.
   */
  retryMs?: number | undefined;
  /**
   * How long before the lease's end it counts as lost. Choose it as long as the work takes to stop, at most a
   * third of the TTL; a tenth of it if not given, and 5000 at most.
   */
  marginMs?: number | undefined;
  /** Ends the waiting, whose place is given up then. In `guard` it ends the work as well: the lease's signal follows it. */
  signal?: AbortSignal | null | undefined;
  /**
   * Is told of each change of state, with what led to it: on `at_risk` why the renewal failed, on `lost` the loss, on
   * `released` why nobody answered if nobody did. By then the lease's signal has been aborted if it is to be.
   */
  onState?: ((state: State, error?: PaddockError) => void) | undefined;
  /** Is told of each call that failed and is to be sent again. */
  onRetry?: ((error: PaddockError) => void) | undefined;
}

/**
 * A State says how sure a holder may be of its lease. `held`: the last renewal succeeded. `at_risk`: one has failed
 * and is tried again; the work may go on until the deadline. `lost`: the lease is, or may be, over; stop
 * the work. `released`: it was given up.
 */
export type State = 'held' | 'at_risk' | 'lost' | 'released';

/** Wanted are options with their defaults filled in. */
export interface Wanted extends Options {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly retryMs: number;
  readonly marginMs: number;
  /** What of it the service is told. */
  readonly request: AcquireRequest;
}

/** resolve fills the defaults in, or throws `invalid_request` if the options do not go together. */
export async function resolve(o: Options): Promise<Wanted> {
  const { ttlMs = usualTtlMs, waitMs = 0, retryMs = usualRetryMs } = o;
  const marginMs = o.marginMs ?? Math.min(ttlMs / 10, longestMarginMs);
  if (!(ttlMs > 0 && Number.isFinite(ttlMs))) {
    throw invalid('ttlMs', `is ${ttlMs}; give a number of milliseconds above 0`);
  }
  if (!(marginMs >= 0 && marginMs <= ttlMs / 3)) {
    throw invalid('marginMs', `is ${marginMs}; give at most a third of the TTL, ${ttlMs}, or renewals come too late`);
  }
  if (!(waitMs >= 0)) {
    throw invalid('waitMs', `is ${waitMs}; give 0 to try only, or Infinity`);
  }
  if (!(retryMs >= 0)) {
    throw invalid('retryMs', `is ${retryMs}; give 0 not to send again`);
  }
  return { ...o, ttlMs, waitMs, retryMs, marginMs, request: await requestOf(o, ttlMs) };
}

async function requestOf(o: Options, ttlMs: number): Promise<AcquireRequest> {
  return {
    ...given({
      mode: o.mode, capacity: o.capacity, grace_ms: o.graceMs, max_hold_ms: o.maxHoldMs, metadata: o.metadata,
    }),
    ttl_ms: ttlMs,
    holder: o.holder ?? (await ourselves()),
  };
}
