import type { components } from './schema.js';

/**
 * A Code identifies an error; branch on it. A newer service may send codes that this package does not know; they are
 * kept unchanged.
 */
export type Code = components['schemas']['Code'] | (string & {});

/** A Blocker is a lock in the way: one of several that were asked for, or one above or below in a tree. */
export interface Blocker {
  readonly name: string;
  /** The holder of a lease in the way. Absent if only waiters are. */
  readonly holder?: string;
  /** The earliest time for a retry, in milliseconds from now. */
  readonly retryAfterMs: number;
  /** Present if that lease is suspect. */
  readonly suspect?: boolean;
  /** The number of waiters that are served before you. */
  readonly waitersAhead?: number;
}

/** A DeadlockStep is one waiting call of a deadlock, and what it waits for. */
export interface DeadlockStep {
  /** The lock that the call waits for. */
  readonly name: string;
  /** The holder of the call. */
  readonly holder: string;
  /** The holder of the lease or of the waiting call in the way. */
  readonly waitsFor: string;
  /** The lock of that lease or call. Present if it is above or below `name` in a tree. */
  readonly at?: string;
  /** Present if a waiting call that is ahead in the queue is in the way, not a lease. */
  readonly ahead?: boolean;
}

/** ErrorFields are the details of an error. Each is present only where the code calls for it. */
export interface ErrorFields {
  /** The HTTP status, if there was a response. */
  readonly status?: number;
  /** The request's ID in the service's log. */
  readonly requestId?: string;
  /** The invalid member of the request. */
  readonly field?: string;
  /** The holder of the lock; of `already_done`, who has done the work. */
  readonly holder?: string;
  /** When the work was done, by the database's clock. */
  readonly doneAt?: Date;
  /** The earliest time for a retry, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** Present if the lock, or one of several, is suspect: an operator must look at the work and revoke its lease. */
  readonly suspect?: boolean;
  /** The number of waiters that are served before you. */
  readonly waitersAhead?: number;
  /** The locks in the way, if several were asked for, or in a tree. */
  readonly blockers?: readonly Blocker[];
  /** The circle of a deadlock: this call first; each waits for the next one, and the last one for this call. */
  readonly cycle?: readonly DeadlockStep[];
  /** The names of the locks that were acquired together. */
  readonly set?: readonly string[];
  /** How long the place in the queue is still kept, in milliseconds. */
  readonly placeKeptMs?: number;
  /** The capacity of the permits that are held or waited for. */
  readonly capacity?: number;
  /** The token in the request, or the token of the lost lease. */
  readonly token?: number;
  /** The greatest token granted or seen. */
  readonly newestToken?: number;
  /** The version of the fenced resource. */
  readonly version?: number;
  /** How the lost lease or session ended; absent if unknown. */
  readonly ended?: 'released' | 'expired' | 'revoked';
  /** When it ended, by the database's clock. */
  readonly endedAt?: Date;
  /** The reason for the revocation or the freeze. */
  readonly reason?: string;
  /** The name of the API key that revoked it; absent if the service requires none. */
  readonly revokedBy?: string;
  /** The name of the API key that froze the lock; absent if the service requires none. */
  readonly frozenBy?: string;
  /** When the freeze ends by itself, by the database's clock; absent: never. */
  readonly frozenUntil?: Date;
  /** @internal Whether a wait was cut, which is no failure: the rest of it is asked for at once. */
  readonly cut?: boolean;
  /** The underlying error, of the network or of the work. */
  readonly cause?: unknown;
}

export interface PaddockError extends Omit<ErrorFields, 'cause'> {}

/** A PaddockError is an error response of the service, or the failure of a call that got no valid response. */
export class PaddockError extends Error {
  override readonly name = 'PaddockError';

  constructor(
    readonly code: Code,
    /** For people: what happened and what to do next. */
    readonly detail: string,
    fields: ErrorFields = {},
  ) {
    super(`${code}: ${detail}`);
    Object.assign(this, fields);
  }
}

/** changed returns a copy of the error with other members. */
export function changed(error: PaddockError, to: Partial<Pick<PaddockError, 'code' | 'detail'>> & ErrorFields): PaddockError {
  const { name: _name, code, detail, ...fields } = { ...error, ...to };
  return new PaddockError(code, detail, fields);
}

/** hasCode reports whether the error is a PaddockError with one of the codes. */
export function hasCode(error: unknown, ...codes: Code[]): error is PaddockError {
  return error instanceof PaddockError && codes.includes(error.code);
}

/** wasCut reports whether the error is that of a wait that was cut. */
export function wasCut(error: unknown): boolean {
  return error instanceof PaddockError && error.cut === true;
}

/**
 * invalid returns an `invalid_request` error. problem completes a sentence that starts with the field's name; it has
 * no full stop.
 */
export function invalid(field: string, problem: string): PaddockError {
  return new PaddockError('invalid_request', `${field} ${problem}.`, { field });
}
