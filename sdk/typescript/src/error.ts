import type { components } from './schema.js';

/**
 * A code says what went wrong in one word, and is what to branch on. A newer service may
 * know codes that this package does not; they are kept as they are.
 */
export type Code = components['schemas']['Code'] | (string & {});

/** Facts are what an error says besides its code: each is there where the code calls for it. */
export interface Facts {
  /** The HTTP status, if there was an answer. */
  readonly status?: number;
  /** What the service's log knows the request by. */
  readonly requestId?: string;
  /** The member of the request that is at fault. */
  readonly field?: string;
  /** Who has the lock. */
  readonly holder?: string;
  /** When to try again, at the earliest, in milliseconds. */
  readonly retryAfterMs?: number;
  /** How many wait for the lock and are served before. */
  readonly waitersAhead?: number;
  /** For how long the place in the queue is kept, in milliseconds. */
  readonly placeKeptMs?: number;
  /** Of the permits that are out or waited for. */
  readonly capacity?: number;
  /** The token that was shown, or that the lost lease had. */
  readonly token?: number;
  /** The greatest token granted or seen. */
  readonly newestToken?: number;
  /** The version that the fenced resource has. */
  readonly version?: number;
  /** How the lost lease ended; missing where that is not known. */
  readonly ended?: 'released' | 'expired' | 'revoked';
  /** When it did, by the database's clock. */
  readonly endedAt?: Date;
  /** The reason that the operator gave for revoking. */
  readonly reason?: string;
  /** What led to it: what the network said, or the work. */
  readonly cause?: unknown;
}

export interface PaddockError extends Omit<Facts, 'cause'> {}

/** A PaddockError is a refusal of the service, or what became of a call that it did not answer. */
export class PaddockError extends Error {
  override readonly name = 'PaddockError';

  constructor(
    readonly code: Code,
    /** For people: what happened and what to do next. */
    readonly detail: string,
    facts: Facts = {},
  ) {
    super(`${code}: ${detail}`);
    Object.assign(this, facts);
  }
}

/** hasCode returns whether the error is a PaddockError with one of the codes. */
export function hasCode(error: unknown, ...codes: Code[]): error is PaddockError {
  return error instanceof PaddockError && codes.includes(error.code);
}

/**
 * invalid returns the error of a call that breaks a bound: what is wrong with the field, said
 * so that the sentence goes on from the field's name, without a full stop.
 */
export function invalid(field: string, what: string): PaddockError {
  return new PaddockError('invalid_request', `${field} ${what}.`, { field });
}
